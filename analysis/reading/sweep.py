"""One experiment as frames: what every number and figure of ``analysis`` is computed from."""

from __future__ import annotations

import statistics
from collections.abc import Collection
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import pandas as pd

from analysis.reading.ablated import expected_runs
from analysis.reading.probes import read_probes
from study.records.record import SCORED_STATUSES, Record

METRIC_COLUMNS = ("run_id", "step", "metric", "value")
EXCLUDED_COLUMNS = ("run_id", "arm", "kind", "reason")
ATTEMPT_COLUMNS = ("run_id", "arm", "attempt", "status", "reason", "spent", "time")
SCORE_FIELDS = ("score_final", "score_best", "score_base", "score_greedy")
NULLABLE_NUMBERS = (*SCORE_FIELDS, "lora_rank", "lora_alpha")
RECORD_COLUMNS = tuple(f.name for f in fields(Record))
DIRECTION, SCORE_METRIC = "maximize", "eval/accuracy"
"""What every run of `study` is scored by: they stand for a sweep that has no record yet."""


def typed_frame(rows: list[dict[str, Any]], columns: tuple[str, ...]) -> pd.DataFrame:
    """Rows as a frame of these columns; numbers that may lack are floats, NaN where they do."""
    frame = pd.DataFrame(rows, columns=list(columns))
    numbers = [name for name in NULLABLE_NUMBERS if name in columns]
    return frame.astype(dict.fromkeys(numbers, float))  # None -> NaN, also in an empty frame


@dataclass(frozen=True)
class Sweep:
    """One experiment as far as it has come."""

    path: Path | None
    """The experiment directory; None: it was rebuilt from a storage."""
    plan: dict[str, Any]
    """The parsed ``plan.json``."""
    runs: pd.DataFrame
    """One row per planned run that has a record; the columns are the record's fields."""
    metrics: pd.DataFrame
    """``run_id, step, metric, value``, for the rows of ``runs``; run_id and metric may be
    categories, since ten thousand runs hold twenty million measurements."""
    planned: pd.DataFrame
    """``run_id, arm, phase, learning_rate, seed, status``: the record's status, else ``given up``
    once more attempts failed than a sweep retries by default, else ``missing``; of an imported
    sweep, ``missing`` is a cell whose rows were all left out."""
    excluded: pd.DataFrame
    """``run_id, arm, kind, reason``: what is not in ``runs`` and why, failed attempts included."""
    attempts: pd.DataFrame = field(default_factory=lambda: typed_frame([], ATTEMPT_COLUMNS))
    """``run_id, arm, attempt, status, reason, spent, time``: failed attempts of planned runs; those
    that are ``spent`` count against the retries."""
    selections: dict[str, float] = field(default_factory=dict)
    """Selected learning rate by arm, as written once when the arm's search was over."""
    storage: str | None = None
    """URL, without a password, of the Optuna storage that it was rebuilt from; there, a run has its
    record and its held-out accuracy over steps, and no other measurement or file."""

    @property
    def origin(self) -> str:
        """Where the experiment was read, as a command takes it again."""
        if self.storage is None:
            return str(self.path)
        return f"{self.storage} --experiment {self.name}"

    def beside(self, name: str) -> Path:
        """Where a report or an export called ``name`` goes unless another place is named."""
        return Path(f"{self.name}-{name}") if self.path is None else self.path / name

    @property
    def experiment(self) -> dict[str, Any]:
        """The experiment's own settings: kind, seeds, margin, hypothesis and so on."""
        return cast(dict[str, Any], self.plan["experiment"])

    @property
    def name(self) -> str:
        """Name of the experiment."""
        return str(self.experiment["name"])

    @property
    def kind(self) -> str:
        """``experiment``, ``adhoc``, ``single`` or ``imported``."""
        return str(self.experiment["kind"])

    @property
    def imported(self) -> bool:
        """Whether others ran the sweep: no criterion was declared before it, files are its own."""
        return self.kind == "imported"

    @property
    def is_experiment(self) -> bool:
        """Whether verdicts are due: ad-hoc sweeps and single runs have no declared criterion.

        An imported sweep is judged by the criteria of this package, fixed before it was seen.
        """
        return self.kind in ("experiment", "imported")

    @cached_property
    def direction(self) -> str:
        """``maximize`` or ``minimize``: which way a score is better.

        Raises:
            ValueError: if runs disagree, so that no two of them can be compared.
        """
        return self._common("direction", DIRECTION)

    @cached_property
    def score_metric(self) -> str:
        """Name of the metric that the score of a run is made of.

        Raises:
            ValueError: if runs disagree, so that no two of them can be compared.
        """
        return self._common("score_metric", SCORE_METRIC)

    def _common(self, column: str, default: str) -> str:
        if column not in self.runs:
            return default
        values = sorted(str(value) for value in self.runs[column].dropna().unique())
        if len(values) > 1:
            raise ValueError(
                f"every run of {self.name} must have one {column}, found {', '.join(values)}"
            )
        return values[0] if values else default

    @property
    def stops_early(self) -> bool:
        """Whether the search stops poor learning rates early."""
        return self.experiment.get("early_stopping") is not None

    @property
    def is_joint(self) -> bool:
        """Whether settings and learning rates were searched together (``experiment.best``)."""
        return self.experiment.get("best") is not None

    @property
    def selects_only(self) -> bool:
        """Whether the search has no full curves, stopped or joint: it selects, and estimates
        nothing.
        """
        return self.stops_early or self.is_joint

    @property
    def is_ablation(self) -> bool:
        """Whether its arms lead from one configuration to another, factor by factor."""
        return self.experiment.get("ablate") is not None

    @cached_property
    def probes(self) -> dict[str, dict[str, Any]]:
        """``probes.json`` by run id, of the rows of ``runs`` that have one."""
        places = zip(self.runs["arm"], self.runs["run_id"], strict=True)
        return read_probes(self.path, ((str(arm), str(run_id)) for arm, run_id in places))

    @cached_property
    def grid_runs(self) -> pd.DataFrame:
        """``runs`` without the learning rates that ``experiment.refine`` placed around a best one.

        They may be selected, and enter no curve: arms would have different grids, each densest
        where its scores happened to be high.
        """
        if self.experiment.get("refine") is None:
            return self.runs
        grids = {
            arm: [f"{rate:.6g}" for rate in facts["learning_rates"]]
            for arm, facts in self.plan["arms"].items()
        }
        places = zip(self.runs["arm"], self.runs["learning_rate"], strict=True)
        on_grid = [f"{rate:.6g}" in grids.get(str(arm), ()) for arm, rate in places]
        keep = pd.Series(on_grid, index=self.runs.index, dtype=bool)
        return self.runs[keep | (self.runs["phase"] != "search")]

    @cached_property
    def search_means(self) -> dict[str, dict[float, float]]:
        """Mean search score by arm and learning rate, of the rates that compete to be selected.

        Scores are as recorded. Runs of one rate and seed are no independent ones: they count as
        one. A rate that early stopping ended on any seed does not compete: the mean of its other
        seeds would be one over fewer seeds.
        """
        runs = self.runs
        scored = runs["status"].isin(SCORED_STATUSES) & runs["score_final"].notna()
        search = runs[scored & (runs["phase"] == "search")]
        scores: dict[tuple[str, float], dict[int, list[float]]] = {}
        columns = (search[name] for name in ("arm", "learning_rate", "seed", "score_final"))
        for arm, rate, seed, score in zip(*columns, strict=True):
            scores.setdefault((arm, rate), {}).setdefault(seed, []).append(score)
        pruned = runs[runs["status"] == "pruned"]
        for place in zip(pruned["arm"], pruned["learning_rate"], strict=True):
            scores.pop(place, None)
        means: dict[str, dict[float, float]] = {}
        for (arm, rate), seeds in scores.items():
            # fmean sums exactly, so that equal means tie here as they do in the sweep.
            mean = statistics.fmean(map(statistics.fmean, seeds.values()))
            means.setdefault(str(arm), {})[float(rate)] = mean
        return means

    @cached_property
    def expected(self) -> int:
        """Runs at the end: the planned ones, and report runs that have yet to join the plan."""
        if self.kind != "experiment":
            return len(self.planned)
        if self.is_ablation:
            return expected_runs(self, self._arms_without_a_score())
        if self.is_joint:
            return max(len(self.planned), self._joint_runs())
        declared = set(self.experiment["seeds"]["report"])
        report = self.planned[self.planned["phase"] == "report"]
        joined = {str(arm): set(seeds) for arm, seeds in report.groupby("arm")["seed"]}
        silent = self._arms_without_a_score()
        waiting = (
            len(declared - joined.get(arm, set())) for arm in self.plan["arms"] if arm not in silent
        )
        return len(self.planned) + sum(waiting) + self._refined_runs_to_come(silent)

    def _joint_runs(self) -> int:
        best, seeds = self.experiment["best"], self.experiment["seeds"]
        return int(best["trials"] * len(seeds["search"]) + best["finalists"] * len(seeds["report"]))

    def _refined_runs_to_come(self, silent: Collection[str]) -> int:
        refine = self.experiment.get("refine")
        if refine is None:
            return 0
        waiting = set(self.plan["arms"]) - set(self.plan.get("refined", {})) - set(silent)
        return len(waiting) * int(refine["points"]) * len(self.experiment["seeds"]["search"])

    def _arms_without_a_score(self) -> set[str]:
        """Arms whose search is over without a score: there is no rate to report at."""
        search = self.planned[self.planned["phase"] == "search"]
        scores = self.runs.set_index("run_id")["score_final"]
        found = search["run_id"].isin(scores.index)
        scored = search["run_id"].map(scores).notna()
        over = found.groupby(search["arm"]).all() & ~scored.groupby(search["arm"]).any()
        return {str(arm) for arm in over.index[over]}

    @cached_property
    def complete(self) -> bool:
        """Whether every run there will be has a record."""
        return len(self.runs) == self.expected
