"""FLOPs by hand: tokens, attention, head, and the gradients that nothing asks for."""

from __future__ import annotations

import pytest

from study.plan.description import ATTENTION, Description, resolve_targets
from study.plan.flops import (
    Sequences,
    forward_flops,
    scoring_passes,
    square_ratio,
    train_flops,
)
from tests.plans import description, full, lora

TOKEN, PAIR, LOGIT = Sequences(tokens=1), Sequences(pairs=1), Sequences(logits=1)


def test_sequences_by_hand() -> None:
    # A prompt of 3 and a completion of 2: 5 tokens of 5 keys each; logits of the completion.
    assert Sequences.trained([(3, 2)]) == Sequences(5, 25, 2)
    # 3 x 3, then the fourth token alone, which meets 4 keys; the fifth is never read.
    assert Sequences.sampled([(3, 2)]) == Sequences(4, 13, 2)
    assert Sequences.sampled([(3, 4)]) == Sequences(6, 9 + 4 + 5 + 6, 4)
    assert Sequences.sampled([(3, 2), (3, 4)]) == Sequences(10, 37, 6)
    assert Sequences(1, 2, 3) * 2 + Sequences(1, 1, 1) == Sequences(3, 5, 7)


def test_a_forward_pass_by_hand() -> None:
    model = description()
    # 2 blocks of 640 weights; head 8 x 10; queries and values of width 8 in both blocks.
    assert forward_flops(model, TOKEN) == 2 * 1280
    assert forward_flops(model, LOGIT) == 2 * 80
    assert forward_flops(model, PAIR) == 2 * 2 * (8 + 8)
    work = Sequences.trained([(3, 2)])
    assert forward_flops(model, work) == 5 * 2560 + 2 * 160 + 25 * 64


def test_full_fine_tuning_needs_three_passes() -> None:
    model, work = description(), Sequences.trained([(3, 2)])
    assert train_flops(full(), [], model, work) == 3 * forward_flops(model, work)


def test_lora_by_hand() -> None:
    """The first block's queries, keys and values need no gradient of their input."""
    model, method = description(), lora(1)
    targets = resolve_targets(method, model)
    adapters = 272  # sides of all layers: 2 x 136
    first = 3 * 64 * 2 + 3 * 8 * 2  # of the base and of A
    assert train_flops(method, targets, model, TOKEN) == 4 * 1280 + 6 * adapters - first
    assert train_flops(method, targets, model, LOGIT) == 4 * 80
    assert train_flops(method, targets, model, PAIR) == 3 * 64  # all of attention moves


def test_nothing_is_propagated_below_the_first_adapter() -> None:
    model, method = description(), lora(1, target_modules="mlp")
    targets = resolve_targets(method, model)
    # The first block: gradients of the input of down_proj alone (128 weights); the second: all 640.
    base = 2 * 1280 + 2 * (128 + 640)
    adapters = 6 * 2 * 72 - 2 * 2 * 8  # sides of gate, up, down; A of gate and up in the first
    assert train_flops(method, targets, model, TOKEN) == base + adapters
    assert train_flops(method, targets, model, PAIR) == 64 + 4 * 2 * 8  # the second block's four
    last = ["model.layers.1.mlp.down_proj"]
    assert train_flops(lora(1), last, model, TOKEN) == 2 * 1280 + 2 * (3 * 8 + 2 * 16)


@pytest.mark.parametrize(("leaf", "products"), [("q_proj", 2), ("k_proj", 2), ("v_proj", 1)])
def test_attention_gradients_follow_what_is_adapted(leaf: str, products: int) -> None:
    target = [f"model.layers.1.self_attn.{leaf}"]
    assert train_flops(lora(1), target, description(), PAIR) == 64 + 2 * 8 * products


def test_layers_of_other_names_have_no_attention_and_come_last() -> None:
    model = description(linear_modules={"h.0.c_attn": (6, 4), "h.1.c_attn": (6, 4)})
    assert forward_flops(model, PAIR) == 0
    targets = list(model.linear_modules)
    # Both base products; input gradients, of base and A, of the second block alone.
    assert train_flops(lora(1), targets, model, TOKEN) == 2 * 48 + 2 * 24 + 6 * 20 - 2 * 4


def test_the_closed_form_is_the_limit_of_many_square_layers() -> None:
    method, width = lora(32), 256

    def ratio(blocks: int) -> float:
        model = _square(width, blocks)
        targets = resolve_targets(method, model)
        own = train_flops(method, targets, model, TOKEN)
        return own / train_flops(full(), [], model, TOKEN)

    closed = square_ratio(32, width)
    gaps = [closed - ratio(blocks) for blocks in (1, 10, 100)]
    assert gaps[0] > 0.01
    assert gaps == pytest.approx([gaps[0], gaps[0] / 10, gaps[0] / 100])


def _square(width: int, blocks: int) -> Description:
    names = [f"model.layers.{i}.self_attn.{leaf}" for i in range(blocks) for leaf in ATTENTION]
    return description(linear_modules=dict.fromkeys(names, (width, width)), hidden_size=width)


@pytest.mark.parametrize(
    ("rank", "width", "expected"),
    [(1, 4096, 0.6672), (32, 4096, 0.6823), (256, 4096, 0.7917), (256, 1024, 1.1667)],
)
def test_the_closed_form(rank: int, width: int, expected: float) -> None:
    assert square_ratio(rank, width) == pytest.approx(expected, abs=5e-5)


def test_the_closed_form_refuses_what_is_no_rank() -> None:
    with pytest.raises(ValueError, match="rank and width must be at least 1, got 0 and 64"):
        square_ratio(0, 64)


def test_scoring_passes() -> None:
    assert scoring_passes(beta=0.0, num_iterations=1) == 0
    assert scoring_passes(beta=0.1, num_iterations=1) == 1
    assert scoring_passes(beta=0.1, num_iterations=2) == 2
