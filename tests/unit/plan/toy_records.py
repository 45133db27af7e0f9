"""Records of the runs of a toy plan, scored by the truth of the engine double."""

from __future__ import annotations

import dataclasses
from typing import Any

from study.plan.experiment import Plan
from study.records.record import Record
from tests.engine_double import true_score
from tests.plans import objective


def record_of(
    plan: Plan, run_id: str, score: float | None = None, status: str = "completed"
) -> Record:
    run = plan.run(run_id)
    known: dict[str, Any] = {f.name: None for f in dataclasses.fields(Record)}
    config = dataclasses.replace(
        plan.arms[run.arm].config,
        objective=objective(learning_rate=run.learning_rate),
        seed=run.seed,
    )
    final = true_score(config) if score is None else score
    return Record(
        **{
            **known,
            "run_id": run_id,
            "arm": run.arm,
            "phase": run.phase,
            "learning_rate": run.learning_rate,
            "seed": run.seed,
            "status": status,
            "score_final": None if status == "no_signal" else final,
            "wall_time_s": 10.0,
        }
    )


def all_records(plan: Plan, phase: str = "search") -> dict[str, Record]:
    return {r.run_id: record_of(plan, r.run_id) for r in plan.runs if r.phase == phase}
