"""What a method trains in a described model, by hand: layers, parameters, alpha."""

from __future__ import annotations

import math

import pytest

from study.plan.description import check_rank, resolve_targets, trainable_params
from tests.plans import description, full, lora


def test_targets_by_preset_name_and_regex() -> None:
    model = description()
    assert len(resolve_targets(lora(), model)) == 14
    assert len(resolve_targets(lora(target_modules=["all"]), model)) == 14
    assert len(resolve_targets(lora(target_modules="attention"), model)) == 8
    assert len(resolve_targets(lora(target_modules="mlp"), model)) == 6
    assert len(resolve_targets(lora(target_modules=["q_proj", "v_proj"]), model)) == 4
    assert resolve_targets(lora(target_modules=r".*layers\.1.*up_proj"), model) == [
        "model.layers.1.mlp.up_proj"
    ]
    assert resolve_targets(full(), model) == []


def test_every_requested_name_must_match() -> None:
    with pytest.raises(ValueError, match=r"'v_porj' matches no linear layer.*'v_proj'\?"):
        resolve_targets(lora(target_modules=["q_proj", "v_porj"]), description())
    with pytest.raises(ValueError, match="no valid regex"):
        resolve_targets(lora(target_modules="q_proj("), description())


def test_rank_laws() -> None:
    model = description()
    targets = resolve_targets(lora(), model)
    check_rank(lora(8), targets, model)
    with pytest.raises(ValueError, match="rank <= 8 must hold"):
        check_rank(lora(9), targets, model)
    shapes = {**model.linear_modules, "model.layers.0.self_attn.k_proj": (2, 8)}
    uneven = description(linear_modules=shapes)
    with pytest.warns(UserWarning, match=r"rank=8 exceeds the smaller side \(2\)"):
        check_rank(lora(8), targets, uneven)


def test_trainable_parameters_by_hand() -> None:
    model = description()
    # Per block: 4 attention layers of 8+8, gate and up of 16+8, down of 8+16 = 64 + 72 = 136.
    assert trainable_params(lora(3), resolve_targets(lora(), model), model) == 2 * 3 * 136
    assert trainable_params(full(), [], model) == 1360


def test_alpha_rules_by_hand() -> None:
    assert lora(4).alpha == 32
    assert lora(4, alpha_rule="2r").alpha == 8
    assert lora(4, alpha_rule="sqrt").alpha == 64
    assert lora(2, alpha_rule="sqrt").alpha == pytest.approx(32 * math.sqrt(2))
