"""The score difference that C1 and C2 are about: which scores, which interval, which margin."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis.arms import choice, rate_text, scored
from analysis.claims.comparison import Comparison, SearchPhase
from analysis.claims.verdict import Obstacle
from analysis.curve import oriented_scores
from analysis.equivalence import beyond_margin_p, equivalence_p
from analysis.load import Sweep
from analysis.plateau import plateau_cells
from analysis.stats import (
    MIN_SEEDS,
    Contrast,
    cross_fitted_difference,
    cross_fitted_scores,
    may_pool,
    paired_difference,
    pooled_difference,
    pooled_sd,
)

GAIN_SHARE, MIN_MARGIN = 0.1, 0.02
"""The default margin: this share of FullFT's gain over the base, at least so much."""


@dataclass(frozen=True)
class ScoreDifference:
    """The score difference LoRA - FullFT of one comparison, ready to be judged."""

    comparison: Comparison
    contrast: Contrast
    margin: float
    source: str
    """How the interval came about, in words."""
    flags: tuple[str, ...]

    @property
    def inside_p(self) -> float:
        """p value for a difference inside the margin."""
        return equivalence_p(self.contrast, self.margin)

    @property
    def outside_p(self) -> float:
        """p value for a difference outside the margin."""
        return beyond_margin_p(self.contrast, self.margin)


Finding = ScoreDifference | Obstacle


def measure(sweep: Sweep, comparison: Comparison, search: SearchPhase) -> Finding:
    """The difference LoRA - FullFT with its margin, or why there is none.

    Report seeds decide. Where the experiment has none, its search seeds do by cross-fitting:
    selecting and scoring on the same seeds would flatter the arm with the noisier runs.
    """
    if comparison.obstacle is not None:
        return comparison.obstacle
    missing = [name for name in comparison.names if name not in search.curves]
    if missing:
        reason = f"The search phase of {' and '.join(missing)} lacks scores: complete it."
        return Obstacle("incomplete", reason)
    edge = _edge(sweep, comparison)
    if edge is not None:
        return edge
    if sweep.experiment["seeds"]["report"]:
        return _from_report_seeds(sweep, comparison, search)
    return _from_search_seeds(sweep, comparison, search)


def _edge(sweep: Sweep, comparison: Comparison) -> Obstacle | None:
    """Parity is between arms at their own best rate; an edge is not known to be one."""
    for name in comparison.names:
        chosen = choice(sweep, name)
        if len(sweep.plan["arms"][name]["learning_rates"]) < 2:
            return Obstacle(
                "few_points",
                f"{name} ran at a single learning rate, not at its best one: search a grid.",
            )
        if chosen is not None and chosen.edge is not None:
            direction, end = {"low": ("downwards", "lowest"), "high": ("upwards", "highest")}[
                chosen.edge
            ]
            return Obstacle(
                f"edge_{chosen.edge}",
                f"Extend the grid of {name} {direction}: its best learning rate is the {end} one, "
                f"{rate_text(chosen.learning_rate)}.",
            )
    return None


def _from_report_seeds(sweep: Sweep, comparison: Comparison, search: SearchPhase) -> Finding:
    scores = [_report_scores(sweep, name) for name in comparison.names]
    seeds = sorted(set(scores[0]) & set(scores[1]))
    if not seeds:
        return Obstacle(
            "incomplete", "The arms have no report seed in common: run the report phase."
        )
    lora, full = (np.array([by_seed[seed] for seed in seeds]) for by_seed in scores)
    margin = _margin(sweep, full, search.curves[comparison.names[1]].base)
    if isinstance(margin, Obstacle):
        return margin
    if len(seeds) > 1 and np.ptp(lora) == 0 and np.ptp(full) == 0:
        return Obstacle(
            "no_spread",
            "Every report seed gave the same score, so the spread is unknown: check that the runs "
            "differ, or evaluate on more prompts.",
        )
    pooled = _pooled(comparison, search, lora, full)
    contrast = pooled or paired_difference(lora, full)
    source = "run SD pooled over the plateau" if pooled else "paired t"
    flags = ("pooled_sd",) if pooled else ()
    return ScoreDifference(
        comparison, contrast, margin, f"{len(seeds)} report seeds, {source}", flags
    )


def _report_scores(sweep: Sweep, arm: str) -> dict[int, float]:
    """Score by report seed; rows of one seed are averaged as one."""
    rows = scored(sweep.runs, arm, "report")
    by_seed = (
        rows.assign(score=oriented_scores(rows, "score_final")).groupby("seed")["score"].mean()
    )
    return {int(str(seed)): float(score) for seed, score in by_seed.items()}


def _pooled(
    comparison: Comparison,
    search: SearchPhase,
    lora: NDArray[np.float64],
    full: NDArray[np.float64],
) -> Contrast | None:
    """The difference with a pooled SE, where no report run collapsed and the SDs are alike.

    It decides in place of the paired t, not beside it: of two intervals the better would be
    picked. With 3 report seeds it supports a true equality in half of simulated experiments, the
    paired t in a third; false support stays below 4 %.
    """
    cells = []
    for name, report in zip(comparison.names, (lora, full), strict=True):
        curve = search.curves[name]
        if report.min() < (curve.base + float(np.median(report))) / 2:
            return None
        cells.append([*plateau_cells(curve, search.fraction), report])
    if not may_pool(*(pooled_sd(own, min_cells=2) for own in cells)):
        return None
    floor = pooled_sd([*cells[0], *cells[1]])
    return None if floor is None else pooled_difference(lora, full, floor)


def _from_search_seeds(sweep: Sweep, comparison: Comparison, search: SearchPhase) -> Finding:
    lora, full = (search.curves[name] for name in comparison.names)
    if lora.seeds != full.seeds:
        return Obstacle(
            "incomplete", "There are no report seeds, and the arms' search seeds differ: add some."
        )
    if lora.n_seeds < MIN_SEEDS:
        return Obstacle(
            "few_seeds",
            f"{lora.n_seeds} search seeds and no report seeds: the best of so few is luck; plan 5 "
            "report seeds.",
        )
    margin = _margin(sweep, cross_fitted_scores(full.scores), full.base)
    if isinstance(margin, Obstacle):
        return margin
    contrast = cross_fitted_difference(lora.scores, full.scores)
    source = f"{lora.n_seeds} search seeds, cross-fitted"
    return ScoreDifference(comparison, contrast, margin, source, ("cross_fitted",))


def _margin(sweep: Sweep, full: NDArray[np.float64], base: float) -> float | Obstacle:
    """The declared margin, or the default; none where FullFT learned nothing to keep up with."""
    gain = float(full.mean()) - base
    declared = sweep.experiment.get("margin")
    margin = max(MIN_MARGIN, GAIN_SHARE * gain) if declared is None else float(declared)
    if gain <= margin:
        return Obstacle(
            "no_gain",
            f"FullFT gains {gain:.3f} over the untrained model, no more than the margin "
            f"{margin:.3f}: there is nothing to keep up with; train longer.",
        )
    return margin
