"""One experiment as frames: what every number and figure of ``analysis`` is computed from."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, cast

import pandas as pd

from study.records.record import Record

METRIC_COLUMNS = ("run_id", "step", "metric", "value")
EXCLUDED_COLUMNS = ("run_id", "arm", "kind", "reason")
ATTEMPT_COLUMNS = ("run_id", "arm", "attempt", "status", "reason", "spent", "time")
SCORE_FIELDS = ("score_final", "score_best", "score_base", "score_greedy")
NULLABLE_NUMBERS = (*SCORE_FIELDS, "lora_rank", "lora_alpha")
RECORD_COLUMNS = tuple(f.name for f in fields(Record))


def typed_frame(rows: list[dict[str, Any]], columns: tuple[str, ...]) -> pd.DataFrame:
    """Rows as a frame of these columns; numbers that may lack are floats, NaN where they do."""
    frame = pd.DataFrame(rows, columns=list(columns))
    numbers = [name for name in NULLABLE_NUMBERS if name in columns]
    return frame.astype(dict.fromkeys(numbers, float))  # None -> NaN, also in an empty frame


@dataclass(frozen=True)
class Sweep:
    """One experiment as far as it has come."""

    path: Path
    plan: dict[str, Any]
    """The parsed ``plan.json``."""
    runs: pd.DataFrame
    """One row per planned run that has a record; the columns are the record's fields."""
    metrics: pd.DataFrame
    """``run_id, step, metric, value``, for the rows of ``runs``."""
    planned: pd.DataFrame
    """``run_id, arm, phase, learning_rate, seed, status``: the record's status, else ``given up``
    once more attempts failed than a sweep retries by default, else ``missing``."""
    excluded: pd.DataFrame
    """``run_id, arm, kind, reason``: what is not in ``runs`` and why, failed attempts included."""
    attempts: pd.DataFrame = field(default_factory=lambda: typed_frame([], ATTEMPT_COLUMNS))
    """``run_id, arm, attempt, status, reason, spent, time``: failed attempts of planned runs; those
    that are ``spent`` count against the retries."""
    selections: dict[str, float] = field(default_factory=dict)
    """Selected learning rate by arm, as written once when the arm's search was over."""

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
        """``experiment``, ``adhoc`` or ``single``."""
        return str(self.experiment["kind"])

    @property
    def is_experiment(self) -> bool:
        """Whether verdicts are due: ad-hoc sweeps and single runs have no declared criterion."""
        return self.kind == "experiment"

    @property
    def stops_early(self) -> bool:
        """Whether the search stops poor learning rates early: it selects, and estimates nothing."""
        return self.experiment.get("early_stopping") is not None

    @property
    def expected(self) -> int:
        """Runs at the end: the planned ones, and report runs that have yet to join the plan."""
        waiting = 0
        if self.is_experiment:
            report = self.planned[self.planned["phase"] == "report"]
            for arm in self.plan["arms"]:
                seeds = set(self.experiment["seeds"]["report"])
                if not self._never_reports(arm):
                    waiting += len(seeds - set(report["seed"][report["arm"] == arm]))
        return len(self.planned) + waiting

    def _never_reports(self, arm: str) -> bool:
        """Whether the arm's search is over without a score: there is no rate to report at."""
        search = self.planned[(self.planned["arm"] == arm) & (self.planned["phase"] == "search")]
        found = self.runs[self.runs["run_id"].isin(search["run_id"])]
        return len(search) == len(found) > 0 and bool(found["score_final"].isna().all())

    @property
    def complete(self) -> bool:
        """Whether every run there will be has a record."""
        return len(self.runs) == self.expected
