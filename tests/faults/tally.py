"""What the fault tests inflicted, and what the storage of a sweep holds at one moment."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from optuna.trial import FrozenTrial, TrialState

from study.sweep.claims.storage import Storage


@dataclass
class Tally:
    """What a session of tests inflicted, and what it has counted."""

    injections: int = 0
    launches: int = 0
    runs: int = 0
    seconds: float = 0.0
    running: int = 0
    """Claims of the dead, seen before anything ended them."""
    untold: int = 0
    """Records that no trial held yet, seen before anything told them."""
    lost: int = 0
    """Runs without a record, or whose record no trial holds, when their sweep was over."""
    doubled: int = 0
    """Runs whose record two trials hold, at any moment."""
    differing: int = 0
    """Runs with another record, log or evaluation than in a sweep left in peace."""

    def line(self) -> str:
        """For the end of the output."""
        return (
            f"faults: {self.injections} injections, {self.launches} launches, {self.runs} runs; "
            f"mended: {self.running} claims of the dead, {self.untold} records without a trial; "
            f"{self.lost} lost, {self.doubled} doubled, {self.differing} with other values; "
            f"{self.seconds:.0f} s"
        )


TALLY = Tally()


@dataclass(frozen=True)
class Seen:
    """Trials of a sweep's storage, by what they say of its runs."""

    running: list[FrozenTrial] = field(default_factory=list)
    ended: dict[str, list[FrozenTrial]] = field(default_factory=dict)
    """By run id."""

    @property
    def told(self) -> Counter[str]:
        """Run id -> ended trials that hold its record."""
        return Counter(
            {k: sum("record" in t.user_attrs for t in trials) for k, trials in self.ended.items()}
        )

    @property
    def doubled(self) -> list[str]:
        """Runs whose record two trials hold."""
        return [run_id for run_id, count in self.told.items() if count > 1]

    def repeats(self, trial: FrozenTrial) -> bool:
        """Whether a claim's making was repeated, its first answer lost with a connection."""
        run_id = trial.user_attrs["run_id"]
        others = [t for t in self.running if t.user_attrs["run_id"] == run_id]
        claimants = [
            t.user_attrs["lease"]["claimant"]
            for t in (*others, *self.ended.get(run_id, []))
            if t._trial_id != trial._trial_id and "lease" in t.user_attrs
        ]
        return trial.user_attrs["lease"]["claimant"] in claimants


def look(storage: Storage) -> Seen:
    """What a storage holds now, read as it is."""
    seen, trials = Seen(), storage.trials
    for optuna_study in trials.get_all_studies():
        for trial in trials.get_all_trials(optuna_study._study_id):
            if trial.state is TrialState.RUNNING:
                seen.running.append(trial)
            else:
                seen.ended.setdefault(trial.user_attrs["run_id"], []).append(trial)
    return seen
