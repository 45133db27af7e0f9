"""Regimes of simulated sweeps, and in-memory experiments made of simulated curves."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from analysis.claims.verdict import Verdict
from analysis.estimates.curve import LrCurve
from analysis.estimates.search import SearchSummary, search_summary
from analysis.reading.sweep import EXCLUDED_COLUMNS, METRIC_COLUMNS, Sweep
from analysis.simulate import regimes
from analysis.simulate.draws import ArmTruth, Design, simulate_pair

MED, SHARP = regimes.CLEAR, regimes.SHARP
REGIMES: dict[str, tuple[ArmTruth, ArmTruth, Design]] = {
    # name: LoRA before its shift, FullFT, design
    "low": (MED, MED, Design()),
    "wide": (regimes.WIDE, regimes.WIDE, Design(points=13)),
    "soft": (regimes.SOFT, regimes.SOFT, Design(points=10)),
    "unequal": (regimes.LATER_CLIFF, MED, Design(points=11)),
    "half-decade": (MED, MED, Design(spacing=0.5, points=6)),
}


def pairs(
    regime: str, seeds: int, replications: int, shift: float = 1.0, rng_seed: int = 0
) -> Iterator[tuple[LrCurve, LrCurve]]:
    """Simulated (LoRA, FullFT) search phases; LoRA's truth is shifted up by ``shift`` decades."""
    arm, baseline, design = REGIMES[regime]
    rng = np.random.default_rng(rng_seed)
    for _ in range(replications):
        yield simulate_pair(arm.shifted(shift), baseline, replace(design, seeds=seeds), rng)


def true_log_ratio(regime: str, shift: float = 1.0) -> float:
    """Difference of the true plateau midpoints, in decades."""
    arm, baseline, _ = REGIMES[regime]
    return sum(arm.plateau(0.2)) / 2 - sum(baseline.plateau(0.2)) / 2 + shift


def curve(
    scores: Sequence[Sequence[float]],
    rates: Sequence[float],
    *,
    base: float | None = 0.1,
    arm: str = "full",
) -> LrCurve:
    """A curve from literal ``[seeds, rates]`` scores, no run diverged."""
    values = np.array(scores, dtype=float)
    no = np.zeros(values.shape, dtype=bool)
    return LrCurve(arm, tuple(rates), values, tuple(range(len(values))), base, no)


def experiment(
    curves: Mapping[str, LrCurve],
    report: Mapping[str, Sequence[float]] | None = None,
    *,
    margin: float | None = None,
    kind: str = "experiment",
    methods: Mapping[str, dict[str, Any]] | None = None,
    configs: Mapping[str, dict[str, Any]] | None = None,
    dtypes: Mapping[str, dict[str, str]] | None = None,
    statuses: Mapping[str, str] | None = None,
    missing: int = 0,
    report_base: float | None = None,
    report_seeds: Sequence[int] | None = None,
    selections: Mapping[str, float] | None = None,
    factors: Sequence[str] = ("method",),
    facts: Mapping[str, dict[str, Any]] | None = None,
    direction: str = "maximize",
) -> Sweep:
    """An experiment whose search phase is ``curves`` and whose report seeds score ``report``.

    Args:
        curves: Search phase by arm; ``full`` is full fine-tuning, ``lora-r8`` LoRA at rank 8.
        report: Scores by arm over seeds 100, 101, ...; None: the experiment has no report phase.
        margin: Equality margin of the experiment.
        kind: Kind of the experiment.
        methods: Entries that override an arm's method config.
        configs: Entries that override an arm's config group by group.
        dtypes: Precision by arm, over float32 throughout.
        statuses: Status of an arm's first search run, over completed.
        missing: Runs at the end of the plan without a record.
        report_base: Score of the untrained model on the report's prompts, if it is another one.
        report_seeds: Declared report seeds, if they are not the ones that ran.
        selections: Selected rate by arm, where it is not the one of best mean.
        factors: Of the experiment.
        facts: Further entries of an arm in the plan, ``{"trainable_params": 22528}``.
        direction: ``minimize`` states every score with the opposite sign.
    """
    rows = []
    for name, arm_curve in curves.items():
        cells = itertools.product(enumerate(arm_curve.seeds), enumerate(arm_curve.learning_rates))
        for (i, seed), (j, rate) in cells:
            rows.append(_row(name, "search", rate, seed, arm_curve.scores[i, j], arm_curve.base))
        best = arm_curve.learning_rates[int(arm_curve.means.argmax())]
        rate = (selections or {}).get(name, best)
        base = arm_curve.base if report_base is None else report_base
        for i, score in enumerate((report or {}).get(name, ())):
            rows.append(_row(name, "report", rate, 100 + i, score, base))
    for row in rows:
        if dtypes and row["arm"] in dtypes:
            row["dtypes"] = dtypes[row["arm"]]
        if row["method"] == "lora":
            row["lora_alpha"] = _method(row["arm"], methods)["lora_alpha"]
    if direction == "minimize":
        for row in rows:
            row["direction"] = direction
            row["score_final"] = -row["score_final"]
            row["score_base"] = None if row["score_base"] is None else -row["score_base"]
    for name, status in (statuses or {}).items():
        first = next(row for row in rows if row["arm"] == name)
        first["status"], first["score_final"] = status, np.nan
    frame = pd.DataFrame(rows)
    planned = frame[["run_id", "arm", "phase", "learning_rate", "seed", "status"]]
    n_report = max((len(scores) for scores in (report or {}).values()), default=0)
    if report_seeds is None:
        report_seeds = range(100, 100 + n_report)
    search_seeds = {seed for arm_curve in curves.values() for seed in arm_curve.seeds}
    plan = {
        "experiment": {
            "name": "simulated",
            "kind": kind,
            "margin": margin,
            "seeds": {"search": sorted(search_seeds), "report": list(report_seeds)},
            "factors": list(factors),
        },
        "arms": {
            name: {
                "config": _config(name, methods, configs),
                "learning_rates": list(arm_curve.learning_rates),
                **(facts or {}).get(name, {}),
            }
            for name, arm_curve in curves.items()
        },
        "runs": planned.to_dict("records"),
    }
    runs = frame.iloc[: len(frame) - missing].copy()
    metrics, excluded = (pd.DataFrame(columns=list(c)) for c in (METRIC_COLUMNS, EXCLUDED_COLUMNS))
    found = Sweep(Path("simulated"), plan, runs, metrics, planned.copy(), excluded)
    return replace(found, selections=dict(selections or {}))


def judged(check: Callable[[Sweep, SearchSummary], list[Verdict]], sweep: Sweep) -> list[Verdict]:
    """What one family of claims says of a sweep."""
    return check(sweep, search_summary(sweep))


def _row(
    arm: str, phase: str, rate: float, seed: int, score: float, base: float | None
) -> dict[str, Any]:
    return {
        "run_id": f"{arm}-{phase}-{rate:g}-{seed}",
        "arm": arm,
        "phase": phase,
        "method": "full" if arm.startswith("full") else "lora",
        "lora_alpha": np.nan,
        "learning_rate": rate,
        "seed": seed,
        "status": "completed",
        "direction": "maximize",
        "score_final": float(score),
        "score_base": base,
        "dtypes": dict.fromkeys(("base", "adapter", "optimizer"), "float32"),
    }


def _method(arm: str, methods: Mapping[str, dict[str, Any]] | None) -> dict[str, Any]:
    if arm.startswith("full"):
        return {"name": "full"}
    rank = int(arm.split("-r")[1].split("-")[0])
    method = {"name": "lora", "rank": rank, "alpha_rule": "constant", "lora_alpha": 32.0}
    return {**method, **(methods or {}).get(arm, {})}


def _config(
    arm: str,
    methods: Mapping[str, dict[str, Any]] | None,
    configs: Mapping[str, dict[str, Any]] | None,
) -> dict[str, Any]:
    config = {
        "model": {"name": "lab64", "dtype": "float32"},
        "method": _method(arm, methods),
        "task": {"name": "arithmetic", "family": "sum3"},
        "objective": {"name": "grpo", "learning_rate": 1e-4, "prompts_per_step": 8},
        "seed": 0,
        "save": "last",
    }
    return {**config, **(configs or {}).get(arm, {})}
