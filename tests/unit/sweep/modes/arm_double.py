"""The Optuna study of one arm as early stopping meets it, its accuracies given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import optuna
from optuna.distributions import FloatDistribution
from optuna.storages import InMemoryStorage
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from study.config import EarlyStoppingConfig
from study.sweep.modes.pruning import RatePruner

RATES = (1e-5, 1e-4, 1e-3, 1e-2)
DISTRIBUTION = FloatDistribution(1e-9, 1.0, log=True)


@dataclass
class ArmDouble:
    """The Optuna study of one arm, as the claims of a sweep keep it."""

    settings: EarlyStoppingConfig = field(
        default_factory=lambda: EarlyStoppingConfig(grace_steps=10, keep=0.5, window=1)
    )
    phase: str = "search"

    def __post_init__(self) -> None:
        self.storage = InMemoryStorage()
        self.study_id = self.storage.create_new_study([StudyDirection.MAXIMIZE], "arm/search")
        self.trials: dict[tuple[float, int], int] = {}

    def start(self, rate: float, seed: int, state: TrialState = TrialState.RUNNING) -> None:
        """A new try at a run; the latest is the one that the other methods speak of."""
        trial = optuna.trial.create_trial(
            state=state,
            params={"learning_rate": rate},
            distributions={"learning_rate": DISTRIBUTION},
            user_attrs={"run_id": f"{rate:g}-{seed}", "seed": seed, "phase": self.phase},
        )
        self.trials[rate, seed] = self.storage.create_new_trial(self.study_id, trial)

    def wait(self, rate: float, seed: int) -> None:
        """A try that no worker has taken yet."""
        self.start(rate, seed, TrialState.WAITING)

    def report(self, rate: float, seed: int, accuracies: Mapping[int, float]) -> None:
        """Evaluations of a run, by step; it is started if it was not."""
        if (rate, seed) not in self.trials:
            self.start(rate, seed)
        for step, accuracy in accuracies.items():
            self.storage.set_trial_intermediate_value(self.trials[rate, seed], step, accuracy)

    def end(self, rate: float, seed: int, status: str, reason: str = "") -> None:
        """The latest try ends."""
        if (rate, seed) not in self.trials:
            self.start(rate, seed)
        trial = self.trials[rate, seed]
        self.storage.set_trial_user_attr(trial, "status", status)
        self.storage.set_trial_user_attr(trial, "status_reason", reason)
        scored = {"completed": 0.5, "diverged": 0.0}.get(status)
        state = TrialState.FAIL if scored is None else TrialState.COMPLETE
        if status == "pruned":
            state = TrialState.PRUNED
        self.storage.set_trial_state_values(trial, state, None if scored is None else [scored])

    def reason(self, rate: float, seed: int = 0) -> str | None:
        """What the pruner says to a run; the plain answer must be the same."""
        optuna_study = optuna.load_study(study_name="arm/search", storage=self.storage)
        trial: FrozenTrial = self.storage.get_trial(self.trials[rate, seed])
        pruner = RatePruner(self.settings)
        reason = pruner.reason(optuna_study, trial)
        assert pruner.prune(optuna_study, trial) is (reason is not None)
        return reason

    def stopped(self) -> list[float]:
        """Rates that are told to stop, on whichever seed."""
        return sorted({rate for rate, seed in self.trials if self.reason(rate, seed)})


def arm(at: Mapping[int, Sequence[float]], seeds: Sequence[int] = (0,)) -> ArmDouble:
    """An arm whose four rates have these accuracies by step, the same on every seed."""
    double = ArmDouble()
    for seed in seeds:
        for i, rate in enumerate(RATES):
            double.report(rate, seed, {step: values[i] for step, values in at.items()})
    return double
