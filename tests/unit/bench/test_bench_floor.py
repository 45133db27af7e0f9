"""The products of a run-step, counted by hand and against the formulas of the plan."""

from __future__ import annotations

import dataclasses
import itertools

import pytest

from study.bench.floor import Phase, Product, Work, median_seconds, phases
from study.bench.watch import Moment
from study.plan.flops import Sequences, forward_flops, train_flops
from tests.plans import description, full, lora

WORK = Work(prompts=2, rows=8, prompt_tokens=9, completion_tokens=11, longest=14, unequal_share=1.0)
HEAD = 2.0 * 8 * 10  # FLOPs of the double's output head for one token
BLOCKS = 2.0 * 1280
TRAINED = Sequences(tokens=98, logits=88)  # the floor counts no products of attention


def test_tokens_by_hand() -> None:
    assert WORK.prefill_tokens == 18
    assert WORK.decoded_tokens == 80
    assert WORK.trained_tokens == 98
    assert WORK.logits == 88
    half = dataclasses.replace(WORK, unequal_share=0.5)
    assert (half.trained_tokens, half.logits) == (49, 44)


def test_product_counts_a_multiplication_and_an_addition() -> None:
    assert Phase([Product(3, 4, 5, "none"), Product(1, 2, 3, "left")], 2).flops == 2 * (120 + 12)


def test_full_fine_tuning_by_the_formulas_of_the_plan() -> None:
    model, method = description(), full()
    prefill, decode, train = phases(WORK, method, [], model)
    assert forward_flops(model, Sequences(tokens=1, logits=1)) == BLOCKS + HEAD
    assert prefill.flops == 18 * BLOCKS + 2 * HEAD
    assert decode.passes == 13
    assert decode.flops == 13 * round(80 / 13) * (BLOCKS + HEAD)  # six rows at a time
    assert train.flops == train_flops(method, [], model, TRAINED)


def test_merged_adapters_cost_what_the_plan_says_but_their_forward_pass() -> None:
    model, method = description(), lora(rank=4)
    targets = list(model.linear_modules)
    sides = sum(sum(shape) for shape in model.linear_modules.values())
    areas = sum(a * b for a, b in model.linear_modules.values())
    prefill, _, train = phases(WORK, method, targets, model)
    assert prefill.flops == 18 * BLOCKS + 2 * HEAD
    first = 3 * 2 * (8 * 8 + 4 * 8)  # gradients of the first block's input, base and A
    planned = train_flops(method, targets, model, TRAINED) + 98 * first
    assert train.flops == planned - 98 * 2 * 4 * sides + 2 * 4 * areas


def test_adapters_on_some_layers_cost_less() -> None:
    model, method = description(), lora(rank=4)
    one, two = ["model.layers.0.mlp.up_proj"], list(model.linear_modules)[:2]
    assert phases(WORK, method, one, model)[-1].flops < phases(WORK, method, two, model)[-1].flops


def test_seconds_are_the_median_of_repeated_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    ends = itertools.accumulate([1, 5, 1, 2, 1, 3, 1, 9, 1, 4])  # five laps, a second in between
    monkeypatch.setattr("study.bench.floor.now", lambda: Moment(0.0, float(next(ends))))
    calls: list[int] = []
    assert median_seconds(lambda: calls.append(1)) == 4.0  # of 5, 2, 3, 9 and 4
    assert len(calls) == 6  # the first one warms up
