"""How a run and its result look as an Optuna trial."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import optuna
from optuna.distributions import FloatDistribution
from optuna.trial import FrozenTrial, TrialState

from study.plan.arms import Arm
from study.plan.experiment import PlannedRun
from study.records.record import Record


def new_trial(
    run: PlannedRun,
    arm: Arm,
    state: TrialState,
    values: list[float] | None = None,
    **user_attrs: Any,
) -> FrozenTrial:
    """A trial of ``run``, to be added to the study of its arm and phase."""
    rates = (*arm.learning_rates, run.learning_rate)
    return optuna.trial.create_trial(
        state=state,
        values=values,
        params={"learning_rate": run.learning_rate},
        distributions={"learning_rate": FloatDistribution(min(rates), max(rates), log=True)},
        user_attrs={"run_id": run.run_id, "seed": run.seed, "phase": run.phase, **user_attrs},
    )


def outcome(record: Record) -> tuple[TrialState, list[float] | None]:
    """State and values with which the trial of a result ends."""
    if record.status == "pruned":
        return TrialState.PRUNED, None
    if record.score_final is None:
        return TrialState.FAIL, None
    return TrialState.COMPLETE, [record.score_final]


def attributes(record: Record) -> dict[str, Any]:
    """What the trial of a result says beside its score: the whole record, and why in words."""
    because = {"status_reason": record.status_reason} if record.status_reason else {}
    return {"record": asdict(record), "status": record.status, **because}
