"""The analytic FLOPs against torch's own counter, on the lab models."""

import pytest
import torch
from peft import get_peft_model
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from study.config import ModelConfig
from study.plan.description import resolve_targets
from study.plan.flops import Sequences, forward_flops, square_ratio, train_flops
from study.train.methods import adapter_config, prepare_model
from study.train.models import linear_modules, load_model
from tests.plans import description, full, lora

PROMPT, COMPLETION, ROWS = 9, 14, 16
METHODS = [full(), lora(1), lora(8), lora(64), lora(8, target_modules="attention")]
METHODS += [lora(8, target_modules="mlp"), lora(8, target_modules=["k_proj", "down_proj"])]


def lab(name: str):
    """A lab model and its description."""
    model = load_model(ModelConfig(name=name, source="lab", dtype="float32"))
    config = model.config
    shapes = linear_modules(model)
    return model, description(
        linear_modules=shapes, hidden_size=config.hidden_size, vocab_size=config.vocab_size
    )


def trainable(model, method, targets):
    """The model with what the method trains."""
    prepare_model(model, method)
    return get_peft_model(model, adapter_config(method, targets)) if targets else model


def counted(model, *, backward: bool) -> float:
    """FLOPs that torch counts of a pass: logits of the completions only, as TRL makes them.

    The plain kernel, because the counter does not know torch's fused one for a CPU.
    """
    ids = torch.zeros(ROWS, PROMPT + COMPLETION, dtype=torch.long)
    counter = FlopCounterMode(display=False)
    with sdpa_kernel(SDPBackend.MATH), counter, torch.set_grad_enabled(backward):
        logits = model(input_ids=ids, logits_to_keep=COMPLETION, use_cache=False).logits
        assert logits.shape[1] == COMPLETION
        if backward:
            logits.sum().backward()
    return counter.get_total_flops()


@pytest.mark.parametrize("name", ["lab64", "lab128"])
@pytest.mark.parametrize("method", METHODS, ids=lambda m: f"{m.name}-{getattr(m, 'rank', '')}")
def test_counted_training_is_the_exact_sum(name, method):
    model, described = lab(name)
    targets = resolve_targets(method, described)
    model = trainable(model, method, targets)
    work = Sequences.trained([(PROMPT, COMPLETION)] * ROWS)
    # The claim allows 2 %; nothing is left over.
    assert counted(model, backward=True) == train_flops(method, targets, described, work)


def test_counted_forward_pass_is_the_exact_sum():
    model, described = lab("lab64")
    work = Sequences.trained([(PROMPT, COMPLETION)] * ROWS)
    assert counted(model, backward=False) == forward_flops(described, work)


def test_a_narrow_model_needs_less_than_the_closed_form_says():
    found = []
    for method in (lora(8), full()):
        model, described = lab("lab64")
        model = trainable(model, method, resolve_targets(method, described))
        found.append(counted(model, backward=True))
    assert found[0] / found[1] == pytest.approx(0.82, abs=0.01)
    assert square_ratio(8, 64) == pytest.approx(0.92, abs=0.005)
