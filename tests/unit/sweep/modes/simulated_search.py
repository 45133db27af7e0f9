"""Search phases made of recorded curves, run through the real pruner.

``tests/data/quickstart_curves.csv`` holds the held-out accuracies of the search runs of
``experiment=quickstart``, a row for each run and a column for each evaluated step (seeds 0 and 1 by
engine=trl and evaluated more often, seed 2 by engine=packed). A simulated run
is a recorded curve of its arm and learning rate, drawn with replacement, with the binomial noise of
another 512 evaluation prompts on top: more noise than a real run has.
"""

from __future__ import annotations

import csv
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import optuna
from numpy.random import Generator
from optuna.distributions import FloatDistribution
from optuna.storages import InMemoryStorage
from optuna.study import StudyDirection
from optuna.trial import TrialState

from study.config import EarlyStoppingConfig
from study.sweep.modes.pruning import RatePruner

CURVES = Path(__file__).parents[3] / "data" / "quickstart_curves.csv"
EVAL_PROMPTS, FINAL_WINDOW = 512, 3
STEPS = (25, 50, 75, 100, 125, 150)
"""When a run of the quickstart is evaluated after step 0."""
PLATEAU = 0.2
"""A rate is on the plateau if it lies within this share of the top's rise over the base."""

Curve = Mapping[int, float]
"""Accuracy by step."""
Curves = Mapping[str, Mapping[float, Sequence[Curve]]]
"""Recorded curves by arm and learning rate, one for each seed."""
Cell = tuple[str, float, int]
"""Arm, learning rate and seed of a run."""


def recorded(path: Path = CURVES) -> Curves:
    """The recorded curves."""
    curves: dict[str, dict[float, list[Curve]]] = {}
    with path.open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            curve = {int(key): float(value) for key, value in row.items() if key.isdigit()}
            rates = curves.setdefault(row["arm"], {})
            rates.setdefault(float(row["learning_rate"]), []).append(curve)
    return curves


def final_score(curve: Curve) -> float:
    """The score of a run: mean of its last evaluations."""
    return statistics.fmean(curve[step] for step in STEPS[-FINAL_WINDOW:])


def plateau(rates: Mapping[float, Sequence[Curve]]) -> set[float]:
    """Rates whose mean recorded score lies on the plateau of their arm."""
    means = {rate: statistics.fmean(map(final_score, curves)) for rate, curves in rates.items()}
    base = statistics.fmean(curve[0] for curves in rates.values() for curve in curves)
    top = max(means.values())
    return {rate for rate, mean in means.items() if mean >= top - PLATEAU * (top - base)}


def drawn(curves: Curves, seeds: int, rng: Generator) -> dict[Cell, Curve]:
    """One simulated run for each arm, rate and seed, in the order of a plan: seed by seed."""
    runs: dict[Cell, Curve] = {}
    longest = max(map(len, curves.values()))
    for seed in range(seeds):
        for index in range(longest):
            for arm, rates in curves.items():
                rate, found = list(rates.items())[index]
                curve = found[rng.integers(len(found))]
                hits = rng.binomial(EVAL_PROMPTS, [curve[step] for step in STEPS])
                runs[arm, rate, seed] = dict(zip(STEPS, hits / EVAL_PROMPTS, strict=True))
    return runs


def chosen(runs: Mapping[Cell, Curve], stopped: set[Cell], arm: str) -> float:
    """The rate of best mean score, as the sweep selects it: no seed of it was stopped."""
    rates = sorted({rate for name, rate, _ in runs if name == arm})
    out = {rate for name, rate, _ in stopped if name == arm}
    means = {
        rate: statistics.fmean(
            final_score(curve) for cell, curve in runs.items() if cell[:2] == (arm, rate)
        )
        for rate in rates
        if rate not in out
    }
    return max(means, key=lambda rate: (means[rate], -rate))


@dataclass(frozen=True, kw_only=True)
class Search:
    """What became of a search phase."""

    stopped: set[Cell]
    trained: int
    """Optimizer steps of all runs together."""


def search(runs: Mapping[Cell, Curve], settings: EarlyStoppingConfig, lanes: int) -> Search:
    """Run a search phase in ``lanes`` lanes that evaluate together and are refilled in plan order.

    All runs of an evaluation report before the first of them asks, as in a pack.
    """
    double = _Storage(runs)
    pruner = RatePruner(settings)
    waiting, running = list(runs), dict[Cell, int]()
    stopped: set[Cell] = set()
    trained = 0
    while waiting or running:
        while waiting and len(running) < lanes:
            running[waiting[0]] = 0
            double.start(waiting.pop(0))
        for cell, done in running.items():
            double.report(cell, *list(runs[cell].items())[done])
        for cell, done in list(running.items()):
            at = list(runs[cell])
            running[cell] = done + 1
            ends, asks = done + 1 == len(at), done + 1 < len(at)
            reason = double.asks(cell, pruner) if asks else None
            if reason is not None:
                stopped.add(cell)
            if ends or reason is not None:
                double.end(cell, reason)
                trained += at[done]
                del running[cell]
    return Search(stopped=stopped, trained=trained)


class _Storage:
    """One in-memory Optuna study per arm, one trial per run, as the claims of a sweep have them."""

    def __init__(self, runs: Mapping[Cell, Curve]) -> None:
        self._storage = InMemoryStorage()
        self._trials: dict[Cell, int] = {}
        self._studies: dict[str, optuna.Study] = {}
        for arm in dict.fromkeys(cell[0] for cell in runs):
            self._storage.create_new_study([StudyDirection.MAXIMIZE], arm)
            self._studies[arm] = optuna.load_study(study_name=arm, storage=self._storage)
        for arm, rate, seed in runs:
            trial = optuna.trial.create_trial(
                state=TrialState.WAITING,
                params={"learning_rate": rate},
                distributions={"learning_rate": FloatDistribution(1e-9, 1.0, log=True)},
                user_attrs={"run_id": f"{arm}-{rate:g}-{seed}", "seed": seed, "phase": "search"},
            )
            study_id = self._studies[arm]._study_id
            self._trials[arm, rate, seed] = self._storage.create_new_trial(study_id, trial)

    def start(self, cell: Cell) -> None:
        self._storage.set_trial_state_values(self._trials[cell], TrialState.RUNNING)

    def report(self, cell: Cell, step: int, accuracy: float) -> None:
        self._storage.set_trial_intermediate_value(self._trials[cell], step, accuracy)

    def asks(self, cell: Cell, pruner: RatePruner) -> str | None:
        trial = self._storage.get_trial(self._trials[cell])
        return pruner.reason(self._studies[cell[0]], trial)

    def end(self, cell: Cell, reason: str | None) -> None:
        trial = self._trials[cell]
        status, state = ("completed", TrialState.COMPLETE)
        if reason is not None:
            status, state = "pruned", TrialState.PRUNED
            self._storage.set_trial_user_attr(trial, "status_reason", reason)
        self._storage.set_trial_user_attr(trial, "status", status)
        self._storage.set_trial_state_values(trial, state, None if reason else [0.0])


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Many simulated searches, each with and without early stopping."""

    cost: float
    """Steps trained over the steps of the full search."""
    full_hits: float
    """Share of arms whose full search chose a rate on the plateau."""
    hits: float
    """The same with early stopping."""
    same: float
    """Share of arms for which both chose the same rate."""


def compare(
    curves: Curves,
    settings: EarlyStoppingConfig,
    *,
    sweeps: int,
    lanes: int,
    seeds: int = 3,
    rng_seed: int = 0,
) -> Comparison:
    """Simulate ``sweeps`` search phases of all arms, the same runs with and without stopping."""
    rng = np.random.default_rng(rng_seed)
    flat = {arm: plateau(rates) for arm, rates in curves.items()}
    trained, full, early, same = 0, 0, 0, 0
    for _ in range(sweeps):
        runs = drawn(curves, seeds, rng)
        found = search(runs, settings, lanes)
        trained += found.trained
        for arm in curves:
            pair = chosen(runs, set(), arm), chosen(runs, found.stopped, arm)
            full += pair[0] in flat[arm]
            early += pair[1] in flat[arm]
            same += pair[0] == pair[1]
    arms = sweeps * len(curves)
    cells = seeds * sum(map(len, curves.values()))
    return Comparison(
        cost=trained / (sweeps * cells * STEPS[-1]),
        full_hits=full / arms,
        hits=early / arms,
        same=same / arms,
    )
