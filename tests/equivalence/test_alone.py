"""A run does not notice its neighbours: bit for bit, it is the run it would be alone."""

from __future__ import annotations

import dataclasses
import functools
from pathlib import Path
from typing import Any

import pytest

from study.config import RunConfig
from study.tasks.loading import load_task
from study.train.rewards import TaskReward
from tests.equivalence.agree import assert_bit_equal, assert_evaluations_equal
from tests.equivalence.models import save_tiny_model
from tests.equivalence.recorder import run, run_packed, run_trl, specs_of, train_packed, train_trl
from tests.equivalence.recording import Recording

pytestmark = [pytest.mark.equivalence, pytest.mark.usefixtures("dense", "ragged")]

STEPS = {"steps": 4, "eval_every": 2}
LORA = run(rank=4, seed=1, **STEPS)
WIDE = run(rank=20, seed=2, learning_rate=1e-3, prompts_per_step=2, loss_type="dapo", **STEPS)
NARROW = run(rank=1, targets="mlp", seed=3, num_generations=3, prompts_per_step=1, **STEPS)
FULL = run("full", seed=4, weight_decay=0.1, **STEPS)
LARGE = run("full", seed=5, prompts_per_step=8, num_generations=8, micro_batch_size=16, **STEPS)
SHORT = run(rank=2, seed=6, steps=1)
MIXED = [LORA, WIDE, NARROW, FULL, LARGE, SHORT]

DIVERGED = {
    "sampling": run(learning_rate=1e20, seed=7, **STEPS),
    "full": run("full", learning_rate=1e20, seed=8, **STEPS),
    "weights": run(learning_rate=3e38, seed=9, **STEPS),
    "full-weights": run("full", learning_rate=3e38, seed=10, **STEPS),
}


@functools.cache
def _alone(key: str) -> Recording:
    (recording,) = run_packed([_CONFIGS[key]])
    return recording


_CONFIGS: dict[str, RunConfig] = {}


def alone(config: RunConfig) -> Recording:
    _CONFIGS[repr(config)] = config
    return _alone(repr(config))


def assert_each_as_alone(recordings: list[Recording]) -> None:
    for recording in recordings:
        assert_bit_equal(recording, alone(recording.config))


def test_runs_of_all_kinds_in_one_pack():
    assert_each_as_alone(run_packed(MIXED))


def test_the_order_in_the_pack():
    assert_each_as_alone(run_packed(MIXED[::-1]))


def test_a_run_beside_itself():
    first, second = run_packed([LORA, LORA])
    assert_each_as_alone([first, second])


@pytest.mark.parametrize("kind", DIVERGED)
def test_a_neighbour_that_diverges(kind):
    recordings = run_packed([LORA, DIVERGED[kind], FULL])
    assert_each_as_alone(recordings)
    assert recordings[1].outcome.status == "diverged"


@pytest.mark.parametrize("kind", DIVERGED)
def test_divergence_is_trl_s(kind):
    packed, oracle = alone(DIVERGED[kind]), run_trl(DIVERGED[kind])
    assert packed.outcome.status_reason == oracle.outcome.status_reason
    assert packed.outcome.steps_done == oracle.outcome.steps_done
    assert packed.outcome.score_base == oracle.outcome.score_base
    assert packed.batches[0] == oracle.batches[0]
    assert [step for step, _ in packed.steps] == [step for step, _ in oracle.steps]


def test_a_neighbour_that_ends_early_and_the_run_that_takes_its_place():
    recordings = run_packed([LORA, SHORT, FULL], refills=[WIDE, NARROW, LARGE])
    assert_each_as_alone(recordings)


def test_a_run_that_takes_the_place_of_one_that_diverged():
    recordings = run_packed([DIVERGED["sampling"], LORA], refills=[FULL, SHORT])
    assert_each_as_alone(recordings)
    assert recordings[2].outcome.status == "completed"


def test_refills_one_after_the_other_through_a_single_place():
    assert_each_as_alone(run_packed([SHORT], refills=[NARROW, FULL, WIDE]))


def test_a_neighbour_that_is_stopped_early_and_is_itself_as_under_trl():
    recordings = run_packed([LORA, FULL, WIDE], refills=[SHORT], stops={"run-1": 2})
    assert_each_as_alone([recordings[0], *recordings[2:]])
    stopped, oracle = recordings[1], train_trl(FULL, stops={"run-0": 2})
    assert stopped.outcome.steps_done == oracle.outcome.steps_done == 2
    assert stopped.outcome.status == oracle.outcome.status
    assert stopped.outcome.status_reason == oracle.outcome.status_reason
    assert_evaluations_equal(stopped, oracle)
    whole = alone(FULL)
    assert stopped.batches == whole.batches[:2]
    assert stopped.metrics() == whole.metrics()[:2]
    assert not list(stopped.spec.directory.iterdir())


def test_a_neighbour_whose_attempt_cannot_begin():
    good, bad, other, bad_refill, last = specs_of([LORA, WIDE, SHORT, NARROW, FULL])
    bad, bad_refill = (
        dataclasses.replace(spec, trainable_params=spec.trainable_params + 1)
        for spec in (bad, bad_refill)
    )
    recordings = train_packed([good, bad, other], [bad_refill, last])
    for failed in (recordings[1], recordings[3]):
        (error,) = failed.ends
        assert isinstance(error, RuntimeError)
        assert "parameters must be trainable" in str(error)
        assert not failed.steps
    assert_each_as_alone([recordings[0], recordings[2], recordings[4]])


def test_a_neighbour_whose_attempt_fails_on_the_way(monkeypatch):
    reward = TaskReward.__call__
    expected = [alone(config) for config in (LORA, FULL)]  # before the fault is there

    def failing(self: TaskReward, **columns: Any) -> list[float]:
        found = reward(self, **columns)
        if len(found) == NARROW.objective.rows_per_step and self.generated_tokens > 40:
            raise RuntimeError("the scorer is out of order")
        return found

    monkeypatch.setattr(TaskReward, "__call__", failing)
    first, failed, second = run_packed([LORA, NARROW, FULL])
    (error,) = failed.ends
    assert str(error) == "the scorer is out of order"
    assert 0 < len(failed.steps) < NARROW.objective.steps
    for recording, other in zip((first, second), expected, strict=True):
        assert_bit_equal(recording, other)


def test_search_and_report_runs_in_one_pack_are_evaluated_on_their_own_prompts():
    search, report = specs_of([LORA, LORA])
    report = dataclasses.replace(report, eval_role="report")
    first, second = train_packed([search, report])
    assert_bit_equal(first, alone(LORA))
    assert (second.batches, second.metrics()) == (first.batches, first.metrics())
    asked = [problem.prompt_id for problem in load_task(LORA.task).problems("report", 8)]
    assert [e.prompt_ids for e in second.evaluations] == 3 * [asked]
    assert not set(asked) & set(first.evaluations[0].prompt_ids)


def test_a_narrow_model_with_one_prompt_a_step(tmp_path: Path):
    save_tiny_model("qwen2", tmp_path, tied=False)
    small = {"model": tmp_path, "length": 9, "steps": 2, "num_generations": 3}
    configs = [
        run(rank=5, seed=1, prompts_per_step=1, **small),
        run("full", seed=2, prompts_per_step=3, **small),
        run(rank=3, seed=3, prompts_per_step=5, **small),
    ]
    assert_each_as_alone(run_packed(configs))


def test_a_run_that_is_stopped_before_its_first_step():
    stopped, other = run_packed([LORA, FULL], stops={"run-0": 0})
    oracle = train_trl(LORA, stops={"run-0": 0})
    for recording in (stopped, oracle):
        assert (recording.outcome.status, recording.outcome.steps_done) == ("pruned", 0)
        assert recording.outcome.score_final is None
        assert recording.outcome.dtypes["optimizer"] == "none"
    assert stopped.result() == oracle.result()
    assert_bit_equal(other, alone(FULL))
