"""Ablations of a known function as sweeps that analysis reads."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import pandas as pd

from analysis.reading.sweep import (
    EXCLUDED_COLUMNS,
    METRIC_COLUMNS,
    RECORD_COLUMNS,
    Sweep,
    typed_frame,
)
from study.plan.experiment import Plan, PlannedRun, to_json
from study.plan.select import Selection
from study.records.record import Record
from tests.unit.plan.ablations import Noise, Truth, planned, run_to_the_end, scored


def gaussian(sd: float, seed: int = 0) -> Noise:
    """Independent noise for every run."""
    generator = random.Random(seed)
    known: dict[str, float] = {}

    def noise(run: PlannedRun) -> float:
        return known.setdefault(run.run_id, generator.gauss(0, sd))

    return noise


def sweep_of(
    plan: Plan, records: Mapping[str, Record], selections: Mapping[str, Selection]
) -> Sweep:
    """What analysis would load of an experiment in this state."""
    facts = {
        "direction": "maximize",
        "score_metric": "eval/accuracy",
        "method": "lora",
        "lora_rank": 1,
    }
    rows = [asdict(record) | facts for record in records.values()]
    cells = [asdict(run) for run in plan.runs]
    statuses = [records[r.run_id].status if r.run_id in records else "missing" for r in plan.runs]
    return Sweep(
        path=Path("ablated"),
        plan=to_json(plan),
        runs=typed_frame(rows, RECORD_COLUMNS),
        metrics=pd.DataFrame(columns=list(METRIC_COLUMNS)),
        planned=pd.DataFrame(cells).assign(status=statuses),
        excluded=pd.DataFrame(columns=list(EXCLUDED_COLUMNS)),
        selections={arm: choice.learning_rate for arm, choice in selections.items()},
    )


def finished(truth: Truth, noise: Noise, plan: Plan | None = None) -> Sweep:
    """The sweep at its end."""
    return sweep_of(*run_to_the_end(plan or planned(), scored(truth, noise)))
