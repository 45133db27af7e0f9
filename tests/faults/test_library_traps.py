"""Traps of the libraries beneath, each of which has caught people: they are passed by or said."""

from __future__ import annotations

import inspect
import itertools
from dataclasses import replace
from pathlib import Path

import optuna
import pytest
from optuna.samplers import TPESampler

from study.compose import compose, split_sweeps
from study.records.store import ExperimentStore
from study.sweep.claims.claims import Claims
from study.sweep.claims.storage import Storage
from study.sweep.modes import sampling
from study.sweep.schedule import write_plan
from study.sweep.work.child import attempt_status
from tests.plans import FULL_RATES, record_of, toy_plan


@pytest.mark.parametrize(
    ("override", "values"),
    [
        ("seed=range(1,4)", ["1", "2", "3"]),
        ("objective.micro_batch_size=null,8", ["null", "8"]),
        ("method.rank=choice(1,8)", ["1", "8"]),
        ("method.target_modules=[q_proj],[v_proj]", ["[q_proj]", "[v_proj]"]),
        ("seed=sort(3,1,2)", ["1", "2", "3"]),
    ],
)
def test_a_swept_key_has_the_values_that_are_read_off_it(override: str, values: list[str]) -> None:
    fixed, swept = split_sweeps([override])
    assert (fixed, swept) == ([], {override.partition("=")[0]: values})
    for value in values:
        compose([f"{override.partition('=')[0]}={value}"])


@pytest.mark.parametrize(
    "override",
    [
        "method.rank=interval(1,64)",
        "objective.learning_rate=tag(log,interval(1e-4,1e-2))",
        "objective.micro_batch_size=choice(null,8)",
        "seed=1,,2",
    ],
)
def test_a_sweep_without_such_values_is_refused_in_a_sentence(override: str) -> None:
    with pytest.raises(ValueError, match=r"sweeps are lists of values|cannot read") as told:
        split_sweeps([override])
    assert "\n" not in str(told.value)


def test_every_setting_of_the_sampler_is_stated_or_known() -> None:
    """Optuna changes defaults between versions; a new argument must be looked at first."""
    known = set(inspect.signature(TPESampler.__init__).parameters) - {"self"}
    stated = {"n_startup_trials", "n_ei_candidates", "seed", "multivariate", "group"}
    stated |= {"constant_liar"}
    deprecated = {"consider_prior", "prior_weight", "consider_magic_clip", "consider_endpoints"}
    deprecated |= {"gamma", "weights", "warn_independent_sampling"}
    unstated = {"constraints_func"}
    assert known - stated - deprecated == unstated
    source = inspect.getsource(sampling._sampler)
    assert all(f"{name}=" in source for name in stated)


@pytest.mark.parametrize("url", [None, "sqlite:///{}/claims.db"])
def test_a_grid_that_grows_beyond_its_bounds_keeps_every_trial(
    tmp_path: Path, url: str | None
) -> None:
    store = ExperimentStore(tmp_path / "toy")
    claims = Claims(store, Storage(store, url and url.format(tmp_path)), "toy")
    plan = toy_plan()
    with store.lock():
        write_plan(store, claims, plan)
    (claim,) = claims.take(plan.arms, plan.runs)
    claims.finish(claim, record_of(claim.run, 0.4))
    grid = [min(FULL_RATES) / 10, *FULL_RATES, max(FULL_RATES) * 10]
    new = replace(plan.runs[0], run_id="0" * 12, learning_rate=grid[-1])
    full = replace(plan.arms["full"], learning_rates=grid)
    wider = replace(plan, arms={**plan.arms, "full": full}, runs=[*plan.runs, new])
    with store.lock():
        write_plan(store, claims, wider)
    (claim,) = claims.take(wider.arms, [new])
    claims.finish(claim, record_of(claim.run, 0.5))
    found = optuna.load_study(study_name="toy/full/search", storage=claims.storage.trials)
    assert [trial.value for trial in found.trials] == [0.4, 0.5]
    assert found.best_trial.params == {"learning_rate": grid[-1]}


@pytest.mark.integration
@pytest.mark.timeout(120)
def test_whatever_batch_passes_our_law_is_taken_by_trl(tmp_path: Path) -> None:
    from study.train.trl.arguments import grpo_arguments
    from tests.plans import objective, run_config

    for prompts, group in itertools.product((1, 2, 3, 5), (2, 3, 8)):
        rows = prompts * group
        for micro in (None, *(m for m in range(1, rows + 1) if rows % m == 0)):
            chosen = objective(
                prompts_per_step=prompts, num_generations=group, micro_batch_size=micro
            )
            told = grpo_arguments(replace(run_config(), objective=chosen), str(tmp_path))
            assert told.generation_batch_size == rows
            assert told.per_device_train_batch_size * told.gradient_accumulation_steps == rows


@pytest.mark.integration
@pytest.mark.timeout(120)
def test_memory_that_runs_out_has_a_name_whoever_asked_for_it() -> None:
    import torch

    with pytest.raises(RuntimeError) as of_torch:
        torch.empty(10**15)
    assert attempt_status(of_torch.value) == "oom"
    assert attempt_status(torch.OutOfMemoryError("CUDA out of memory")) == "oom"
    assert attempt_status(MemoryError()) == "oom"
    assert attempt_status(RuntimeError("shapes do not match")) == "failed"
