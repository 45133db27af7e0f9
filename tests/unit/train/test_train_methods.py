"""What is trained, and the proof of it."""

import pytest
import torch
from torch import nn

from study.config import FullMethod, LoraMethod
from study.train.methods import (
    adapter_config,
    all_finite,
    check_trainable,
    check_trained,
    fingerprint,
    precisions,
    prepare_model,
    trained,
)

FULL = FullMethod(name="full", default_learning_rate=1e-4)
LORA = LoraMethod(name="lora", default_learning_rate=1e-3, rank=2, alpha_rule="sqrt")


class Adapted(nn.Module):
    """A frozen layer with a trainable low-rank path, named as PEFT names it."""

    def __init__(self) -> None:
        super().__init__()
        self.base = nn.Linear(3, 3).requires_grad_(False)
        self.lora_A = nn.ModuleDict({"default": nn.Linear(3, 2, bias=False)})
        self.lora_B = nn.ModuleDict({"default": nn.Linear(2, 3, bias=False)})
        nn.init.zeros_(self.lora_B["default"].weight)
        self.layer = nn.ModuleList()


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.block = Adapted()


def test_full_fine_tuning_has_no_adapter():
    assert adapter_config(FULL, []) is None


def test_adapter_follows_the_parametrisation():
    config = adapter_config(LORA, ["a.q_proj", "a.v_proj"])
    assert (config.r, config.lora_dropout, config.bias, config.use_rslora) == (2, 0, "none", False)
    assert config.lora_alpha == pytest.approx(32 * 2**0.5)
    assert config.target_modules == {"a.q_proj", "a.v_proj"}
    assert config.init_lora_weights is True


def test_full_fine_tuning_trains_everything():
    model = Model()
    prepare_model(model, LORA)
    assert sum(p.numel() for _, p in trained(model)) == 12
    prepare_model(model, FULL)
    check_trainable(trained(model), 24)
    with pytest.raises(RuntimeError, match="23 parameters must be trainable, got 24"):
        check_trainable(trained(model), 23)


def test_changed_base_is_an_error_even_of_a_diverged_run():
    model = Model()
    before = fingerprint(model)
    model.block.base.weight.data += 1
    with pytest.raises(RuntimeError, match="frozen base changed"):
        check_trained(before, fingerprint(model), trained(model), must_have_moved=False)


def test_unchanged_weights_are_an_error_of_a_completed_run_only():
    model = Model()
    before = fingerprint(model)
    check_trained(before, before, trained(model), must_have_moved=False)
    with pytest.raises(RuntimeError, match="no trainable weight changed"):
        check_trained(before, before, trained(model), must_have_moved=True)


def test_adapter_whose_b_is_still_zero_is_an_error():
    model = Model()
    before = fingerprint(model)
    model.block.lora_A["default"].weight.data += 1
    with pytest.raises(RuntimeError, match="1 adapters were never trained"):
        check_trained(before, fingerprint(model), trained(model), must_have_moved=True)
    model.block.lora_B["default"].weight.data += 1
    check_trained(before, fingerprint(model), trained(model), must_have_moved=True)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_one_bad_number_is_found(bad):
    weights = [torch.ones(4), torch.ones(2, 2)]
    assert all_finite(weights)
    weights[1][1, 0] = bad
    assert not all_finite(weights)


def test_precisions_are_read_from_the_tensors():
    model = Model()
    model.block.base.to(torch.bfloat16)
    optimizer = torch.optim.AdamW([p for _, p in trained(model)])
    assert precisions(model, LORA, optimizer)["optimizer"] == "none"  # no step, no state
    sum(p.sum() for _, p in trained(model)).backward()
    optimizer.step()
    expected = {"base": "bfloat16", "adapter": "float32", "optimizer": "float32"}
    assert precisions(model, LORA, optimizer) == expected
