"""A run in a pack, as its worker sees it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from study.config import with_cell
from study.plan.experiment import Plan, PlannedRun
from study.plan.identity import eval_role
from study.sweep.claims.claims import Claim
from study.sweep.work.messages import Assignment, Progress
from study.train.engine import RunSpec


@dataclass(kw_only=True)
class Lane:
    """A run that this worker holds and its child trains."""

    claim: Claim
    assignment: Assignment
    step: int = 0
    """Optimizer steps done."""
    accuracy: float | None = None
    """The latest held-out accuracy."""

    @property
    def run(self) -> PlannedRun:
        """The run."""
        return self.claim.run

    @property
    def directory(self) -> Path:
        """The attempt's directory."""
        return self.assignment.spec.directory

    @property
    def has_result(self) -> bool:
        """Whether the attempt is complete."""
        return (self.directory / "result.json").exists()

    def advance(self, progress: Progress) -> None:
        """Take in how far the run is."""
        self.step = progress.step
        if progress.accuracy is not None:
            self.accuracy = progress.accuracy


def assign(plan: Plan, run: PlannedRun, directory: Path) -> Assignment:
    """What a child needs to train ``run`` and to write its record."""
    arm = plan.arms[run.arm]
    spec = RunSpec(
        run_id=run.run_id,
        config=with_cell(arm.config, run.learning_rate, run.seed),
        model=arm.model,
        target_modules=arm.target_modules,
        trainable_params=arm.trainable_params,
        eval_role=eval_role(run.phase),
        directory=directory,
    )
    return Assignment(
        spec=spec,
        experiment=plan.experiment.name,
        arm=run.arm,
        phase=run.phase,
        factors=arm.factors,
    )
