"""``plan.json``, checked against what ``study`` writes: one sentence for whatever does not fit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from analysis.reading.files import ABSENT, PLANNED_COLUMNS, is_integer, is_number, read_json
from study.config.laws import is_name
from study.plan.experiment import SCHEMA_VERSION

REQUIRED = ("schema_version", "experiment", "arms", "runs", "looks", "max_retries")
KINDS = ("experiment", "adhoc", "single", "imported")
PHASES = ("search", "report")
MODES: Mapping[str, tuple[tuple[str, ...], Callable[[object], bool]]] = {
    "refine": (("points",), is_integer),
    "best": (("trials", "finalists"), is_integer),
    "ablate": (("source", "target", "path"), lambda value: isinstance(value, str | bool)),
}
"""What each mode of search must say, and of which kind."""


def read_plan(path: Path) -> dict[str, Any]:
    """The plan of the experiment directory ``path``.

    Raises:
        ValueError: if the directory is missing, empty, or without a plan that ``study`` wrote.
    """
    if not path.is_dir():
        raise ValueError(f"no such experiment directory: {path}")
    if not any(path.iterdir()):
        raise ValueError(f"the experiment directory is empty: {path}")
    file = path / "plan.json"
    plan, problem = read_json(file)
    if problem == ABSENT:
        raise ValueError(f"not an experiment directory: no plan.json in {path}")
    if plan is None:
        raise ValueError(f"{file} {problem}")
    check_plan(str(file), plan)
    return plan


def check_plan(where: str, plan: Mapping[str, Any]) -> None:
    """Refuse a plan that analysis cannot read.

    Args:
        where: What holds it, for messages.
        plan: The parsed plan.

    Raises:
        ValueError: with what does not fit.
    """
    foreign = f"{where} is not a plan written by study"
    absent = [key for key in REQUIRED if key not in plan]
    if "schema_version" not in absent and plan["schema_version"] != SCHEMA_VERSION:
        raise ValueError(
            f"{where} has schema_version {plan['schema_version']!r}; this version of analysis "
            f"reads {SCHEMA_VERSION}"
        )
    if absent:
        raise ValueError(f"{foreign}: it lacks {', '.join(absent)}")
    arms, runs = plan["arms"], plan["runs"]
    for key, least in (("looks", 1), ("max_retries", 0)):
        if not is_integer(plan[key]) or plan[key] < least:
            raise ValueError(f"{foreign}: {key} >= {least} must hold, got {plan[key]!r}")
    problem = _experiment_problem(plan["experiment"])
    if problem:
        raise ValueError(f"{foreign}: {problem}")
    if not isinstance(arms, dict) or not all(_is_arm(arm) for arm in arms.values()):
        raise ValueError(
            f"{foreign}: each of its arms needs a config with a method, and learning_rates"
        )
    if not isinstance(runs, list) or not all(_is_planned(run, arms) for run in runs):
        raise ValueError(
            f"{foreign}: each of its runs needs {', '.join(PLANNED_COLUMNS)}, an arm of the plan "
            f"and a phase of {' or '.join(PHASES)}"
        )
    if not isinstance(plan.get("refined", {}), dict):
        raise ValueError(f"{foreign}: refined must be learning rates by arm")
    imported = plan["experiment"]["kind"] == "imported"
    for name in () if imported else (plan["experiment"]["name"], *arms, *_run_ids(runs)):
        if not is_name(name):  # they become paths
            raise ValueError(f"{foreign}: no experiment, arm or run is called {name!r}")
    _check_counted_once(where, runs, repeats=imported)


def _experiment_problem(experiment: object) -> str:
    if not isinstance(experiment, dict) or not {"name", "kind", "seeds"} <= set(experiment):
        return "its experiment needs name, kind and seeds"
    if experiment["kind"] not in KINDS:
        return f"its kind must be one of {', '.join(KINDS)}, got {experiment['kind']!r}"
    margin, factors = experiment.get("margin"), experiment.get("factors", [])
    if margin is not None and not (is_number(margin) and margin > 0):
        return f"experiment.margin > 0 must hold, got {margin!r}"
    if not isinstance(factors, list) or not all(isinstance(key, str) for key in factors):
        return f"experiment.factors must be a list of keys, got {factors!r}"
    stopping = experiment.get("early_stopping")
    if stopping is not None and not _is_early_stopping(stopping):
        return f"experiment.early_stopping needs grace_steps, keep and window, got {stopping!r}"
    return _mode_problem(experiment) or _seeds_problem(experiment["seeds"])


def _mode_problem(experiment: Mapping[str, Any]) -> str:
    for mode, (needs, fits) in MODES.items():
        settings = experiment.get(mode)
        if settings is None:
            continue
        if not isinstance(settings, dict) or not all(fits(settings.get(key)) for key in needs):
            return f"experiment.{mode} needs {' and '.join(needs)}, got {settings!r}"
    return ""


def _is_early_stopping(settings: object) -> bool:
    return isinstance(settings, dict) and all(
        is_number(settings.get(key)) for key in ("grace_steps", "keep", "window")
    )


def _seeds_problem(seeds: object) -> str:
    if not isinstance(seeds, dict) or not set(PHASES) <= set(seeds):
        return "its seeds need search and report"
    for phase in PHASES:
        if not isinstance(seeds[phase], list) or not all(map(is_integer, seeds[phase])):
            return f"seeds.{phase} must be a list of integers, got {seeds[phase]!r}"
    shared = sorted(set(seeds["search"]) & set(seeds["report"]))
    if shared:
        return f"search and report seeds must be disjoint, both hold {shared}"
    return ""


def _is_arm(arm: object) -> bool:
    if not isinstance(arm, dict):
        return False
    config, rates = arm.get("config"), arm.get("learning_rates")
    if not isinstance(config, dict) or not all(isinstance(v, dict) for v in _groups(config)):
        return False
    method = config["method"]
    named = isinstance(method.get("name"), str) and is_integer(method.get("rank", 1))
    return named and isinstance(rates, list) and len(rates) > 0 and all(map(_is_rate, rates))


def _is_rate(value: Any) -> bool:
    return is_number(value) and value > 0


def _groups(config: Mapping[str, Any]) -> list[object]:
    """The parts of a run's config that analysis looks into; only the method must be there."""
    others = ("model", "task", "objective", "evaluation")
    return [config.get("method"), *(config.get(name, {}) for name in others)]


def _is_planned(run: object, arms: Mapping[str, Any]) -> bool:
    if not isinstance(run, dict) or not set(PLANNED_COLUMNS) <= set(run):
        return False
    names = all(isinstance(run[key], str) for key in ("run_id", "arm", "phase"))
    numbers = _is_rate(run["learning_rate"]) and is_integer(run["seed"])
    return names and numbers and run["arm"] in arms and run["phase"] in PHASES


def _run_ids(runs: list[dict[str, Any]]) -> list[str]:
    return [run["run_id"] for run in runs]


def _check_counted_once(where: str, runs: list[dict[str, Any]], *, repeats: bool) -> None:
    """Refuse a run, or a cell of the plan, that would count twice.

    Others may have run a cell twice under one seed; ``repeats`` lets that be.
    """
    for run_id, count in Counter(run["run_id"] for run in runs).items():
        if count > 1:
            raise ValueError(f"{where} names run {run_id!r} twice")
    if repeats:
        return
    cells = Counter(tuple(run[key] for key in PLANNED_COLUMNS[1:]) for run in runs)
    for (arm, phase, rate, seed), count in cells.items():
        if count > 1:
            raise ValueError(
                f"{where} names {count} runs of arm {arm!r} in the {phase} phase at learning rate "
                f"{rate:g} with seed {seed}: give the changed experiment a new name=..."
            )
