"""TRL's order of random draws, which the packed engine repeats, and the judge of differences."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
import torch

from tests.equivalence import draws
from tests.equivalence.draws import Draw, Drawing, distance_to, equal_batches, recorded_draws
from tests.equivalence.recorder import run, run_trl, train_trl
from tests.equivalence.recording import Batch, Recording

pytestmark = pytest.mark.equivalence

ROLLOVER = {"train_prompts": 13, "prompts_per_step": 3, "steps": 6, "eval_every": 2}


@pytest.mark.parametrize("method", ["lora", "full"])
def test_trl_takes_prompts_in_the_order_of_the_seed_and_drops_the_rest_of_an_epoch(method):
    recording = run_trl(run(method, seed=3, **ROLLOVER))
    generator = torch.Generator().manual_seed(3)
    expected: list[list[int]] = []
    while len(expected) < 6:
        order = torch.randperm(13, generator=generator).tolist()
        expected += [order[i : i + 3] for i in (0, 3, 6, 9)]  # the thirteenth is left out
    rows = [[index for index in prompts for _ in range(4)] for prompts in expected[:6]]
    assert [batch.problems for batch in recording.batches] == rows


@pytest.mark.parametrize(
    ("method", "changes"),
    [
        ("lora", {}),
        ("full", {}),
        ("lora", {"micro_batch_size": 4}),
        ("full", {"num_iterations": 2}),
        ("lora", {"temperature": 0.7}),
    ],
    ids=["lora", "full", "micro-batches", "iterations", "temperature"],
)
def test_trl_draws_in_the_order_of_the_law(method, changes):
    found: list[Drawing] = []
    with recorded_draws(found):
        recording = train_trl(run(method, seed=3, **{**ROLLOVER, **changes}))
    generator = torch.Generator().manual_seed(3)
    assert len(found) == len(recording.batches) == 6 // recording.config.objective.num_iterations
    for number, (drawing, batch) in enumerate(zip(found, recording.batches, strict=True)):
        if number % 4 == 0:  # an epoch: the DataLoader draws the seed of workers it never starts
            torch.empty((), dtype=torch.int64).random_(generator=generator)
        assert len(drawing.draws) == max(len(ids) for ids in batch.tokens)
        for position, draw in enumerate(drawing.draws):
            assert torch.equal(draw.state, generator.get_state())
            q = torch.empty_like(draw.probabilities).exponential_(1, generator=generator)
            tokens = (draw.probabilities / q).argmax(dim=-1).tolist()  # of finished rows as well
            assert tokens == draw.tokens
            for row, ids in enumerate(batch.tokens):
                assert position >= len(ids) or ids[position] == tokens[row]
        assert torch.equal(drawing.state_after, generator.get_state())
        torch.randperm(len(batch.tokens), generator=generator)  # the order of the training rows


def test_the_seed_of_a_run_decides_it_whatever_was_drawn_before():
    config = run(seed=3, **ROLLOVER)
    torch.rand(11)
    assert train_trl(config).batches == run_trl(config).batches


def altered(recording: Recording, number: int, row: int, position: int, token: int) -> list[Batch]:
    batches = list(recording.batches)
    tokens = [list(ids) for ids in batches[number].tokens]
    tokens[row][position] = token
    batches[number] = dataclasses.replace(batches[number], tokens=tokens)
    return batches


@pytest.fixture
def oracle() -> Recording:
    return run_trl(run(seed=3, **ROLLOVER))


def other_token(recording: Recording, number: int, row: int, position: int) -> int:
    return recording.batches[number].tokens[row][position] ^ 1  # far less likely, as a rule


def test_equal_runs_are_equal_to_the_last_batch(oracle):
    assert equal_batches(oracle, oracle.batches) == 6


def test_a_difference_that_no_tie_explains_is_refused(oracle):
    changed = altered(oracle, 2, 5, 1, other_token(oracle, 2, 5, 1))
    with pytest.raises(AssertionError, match="batch 2, position 1, row 5"):
        equal_batches(oracle, changed)


def test_a_difference_on_the_boundary_is_allowed_and_said(oracle, monkeypatch):
    changed = altered(oracle, 2, 5, 1, other_token(oracle, 2, 5, 1))
    monkeypatch.setattr(draws, "BOUNDARY", 1.0)
    with pytest.warns(UserWarning, match="a tie was broken otherwise in batch 2"):
        assert equal_batches(oracle, changed) == 2


@pytest.mark.parametrize(
    ("change", "law"),
    [
        (lambda b: dataclasses.replace(b, problems=b.problems[::-1]), "other prompts"),
        (lambda b: dataclasses.replace(b, tokens=[i[:-1] for i in b.tokens]), "goes on where"),
    ],
    ids=["prompts", "length"],
)
def test_no_draw_explains_other_prompts_or_another_end(oracle, change: Any, law):
    batches = [change(batch) if i == 4 else batch for i, batch in enumerate(oracle.batches)]
    with pytest.raises(AssertionError, match=law):
        equal_batches(oracle, batches)


def test_missing_batches_are_refused(oracle):
    with pytest.raises(AssertionError, match="6 and 5 batches"):
        equal_batches(oracle, oracle.batches[:5])


def test_distance_is_that_of_the_ratios():
    state = torch.Generator().manual_seed(5).get_state()
    q = draws.exponential(state, torch.empty(1, 3))
    draw = Draw(state, q * torch.tensor([[1.0, 0.999999, 0.5]]), [0])
    assert distance_to(draw, 0, 1) == pytest.approx(1e-6, rel=0.2)
    assert distance_to(draw, 0, 2) == pytest.approx(0.5)
    with pytest.raises(AssertionError, match="not reproduced"):
        distance_to(dataclasses.replace(draw, tokens=[2]), 0, 1)
