"""Pairs of simulated experiments with a known truth, and short ways to look things up."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from analysis.comparing.experiments import ExperimentComparison
from analysis.comparing.rows import ArmRow
from analysis.estimates.curve import LrCurve
from analysis.reading.sweep import Sweep
from analysis.simulate.draws import Design, simulate_pair
from tests.unit.analysis.simulated_sweeps import MED, curve, experiment

RATES = (1e-5, 1.8e-5, 3.2e-5, 5.6e-5, 1e-4, 1.8e-4, 3.2e-4, 5.6e-4, 1e-3)
SHAPE = (0.2, 0.3, 0.45, 0.5, 0.52, 0.51, 0.5, 0.2, 0.0)
JITTER = ((0.0, 0.01, -0.01), (0.005, -0.01, 0.005), (-0.01, 0.0, 0.01))
"""Three seeds' offsets at three rates, repeated; each rate's offsets differ between seeds."""


def arm(name: str, scale: float = 1.0, *, lift: float = 0.0, seeds: int = 3) -> LrCurve:
    """A curve of one shape at ``scale`` times the rates of :data:`RATES`."""
    rows = [
        [value + lift + JITTER[seed][i % 3] for i, value in enumerate(SHAPE)]
        for seed in range(seeds)
    ]
    return curve(rows, [rate * scale for rate in RATES], base=0.18, arm=name)


def cut(found: LrCurve, rates: int) -> LrCurve:
    """The curve over its first rates alone."""
    return replace(
        found,
        learning_rates=found.learning_rates[:rates],
        scores=found.scores[:, :rates],
        collapsed=found.collapsed[:, :rates],
    )


def sweep(name: str, curves: Mapping[str, LrCurve], **options: Any) -> Sweep:
    """An in-memory experiment in its own directory, with runs of its own."""
    report: Mapping[str, Sequence[float]] | None = options.pop("report", None)
    found = experiment(curves, report, **options)
    runs, planned = (
        frame.assign(run_id=f"{name}-" + frame["run_id"]) for frame in (found.runs, found.planned)
    )
    return replace(found, path=Path(name), runs=runs, planned=planned)


def minimized(found: Sweep, *, metric: str = "eval/loss") -> Sweep:
    """The same sweep with losses for scores."""
    runs = found.runs.assign(
        direction="minimize",
        score_metric=metric,
        score_final=1 - found.runs["score_final"],
        score_base=1 - found.runs["score_base"],
    )
    return replace(found, runs=runs)


def without_base(found: Sweep) -> Sweep:
    """The same sweep, the untrained model never evaluated."""
    return replace(found, runs=found.runs.assign(score_base=np.nan))


def row(found: ExperimentComparison, label: str) -> ArmRow:
    """The row of one matched arm."""
    return next(r for r in found.rows if r.pair.label == label)


def verdicts(found: ExperimentComparison, question: str) -> dict[str, str]:
    """Verdict by arm on one question."""
    return {v.arm: v.verdict for v in found.verdicts if v.question == question}


def simulated(
    shift: float, replications: int, *, seeds: int = 3, rng_seed: int = 0
) -> Iterator[tuple[tuple[LrCurve, LrCurve], tuple[LrCurve, LrCurve]]]:
    """(LoRA, FullFT) of two experiments whose log ratios are 1 and 1 + ``shift`` decades.

    The second is on another model, whose FullFT wants twice the rate.
    """
    rng = np.random.default_rng(rng_seed)
    design = Design(seeds=seeds)
    for _ in range(replications):
        a = simulate_pair(MED.shifted(1.0), MED, design, rng)
        yield a, simulate_pair(MED.shifted(1.3 + shift), MED.shifted(0.3), design, rng)
