"""What the storage of a sweep holds at one moment."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from optuna.trial import FrozenTrial, TrialState

from study.sweep.claims.storage import Storage


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
