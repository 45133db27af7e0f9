"""The health of a run, judged step by step: what ends it, and what its record is flagged with."""

import math
from collections import deque
from dataclasses import dataclass, field

from study.config import RunConfig

FLAG_WINDOW = 10  # last steps that decide the flags `saturated` and `truncated`
TRUNCATED_SHARE = 0.5  # share of completions without an end token that raises `truncated`
_SAMPLING_ERROR = "probability tensor contains either `inf`, `nan`"  # torch.multinomial on a CPU


class RunEnded(Exception):
    """A run that ends early with a result.

    Attributes:
        status: Status of the run's record.
        reason: Why it ended, a clause for the record.
    """

    status = ""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Completed(RunEnded):
    """The run has done its last step."""

    status = "completed"


class Diverged(RunEnded):
    """A loss, gradient, weight or sampling probability is not finite."""

    status = "diverged"


class NoSignal(RunEnded):
    """No group of completions had unequal rewards: the set-up gives nothing to learn from."""

    status = "no_signal"


class Pruned(RunEnded):
    """Early stopping gave the run's place to others: its score is censored."""

    status = "pruned"


def not_finite_before_training(config: RunConfig) -> ValueError:
    """Returns the refusal of a model that is no distribution to begin with."""
    return ValueError(
        f"model {config.model.name} must have finite sampling probabilities before training, at "
        f"temperature {config.objective.temperature}."
    )


def sampling_divergence(error: RuntimeError) -> Diverged | None:
    """Returns the divergence that an error of torch's sampler stands for, if it is that error."""
    if _SAMPLING_ERROR in str(error):
        return Diverged("sampling probabilities are not finite")
    return None


@dataclass(frozen=True)
class StepHealth:
    """What one optimizer step showed.

    Attributes:
        step: Number of optimizer steps done, this one included.
        loss: Loss of the step.
        grad_norm: Gradient norm before clipping.
        weights_finite: Whether every trainable weight is finite after the step.
        unequal_groups: Groups with unequal rewards among the completions of the step.
        all_correct: Whether every completion of the step is correct.
        clipped_ratio: Share of its completions without an end token.
    """

    step: int
    loss: float
    grad_norm: float
    weights_finite: bool
    unequal_groups: int
    all_correct: bool
    clipped_ratio: float


@dataclass
class HealthMonitor:
    """Judges the steps of one run.

    Attributes:
        no_signal_steps: A run whose first so many steps hold no group with unequal rewards
            ends as `no_signal`; None where there are no rewards.
    """

    no_signal_steps: int | None
    _signal_seen: bool = False
    _last: deque[StepHealth] = field(default_factory=lambda: deque(maxlen=FLAG_WINDOW))

    def observe(self, step: StepHealth) -> None:
        """Takes in one step.

        Raises:
            Diverged: If the step's loss, gradient norm or weights are not finite.
            NoSignal: If no group had unequal rewards for long enough.
        """
        self._last.append(step)
        self._signal_seen = self._signal_seen or step.unequal_groups > 0
        for name, healthy in (
            ("loss", math.isfinite(step.loss)),
            ("gradient norm", math.isfinite(step.grad_norm)),
            ("trainable weights", step.weights_finite),
        ):
            if not healthy:
                raise Diverged(f"non-finite {name} at step {step.step}")
        patience = self.no_signal_steps
        if patience is not None and not self._signal_seen and step.step >= patience:
            raise NoSignal(f"no group with unequal rewards in the first {step.step} steps")

    def flags(self, scorer_errors: int) -> list[str]:
        """Returns the run's flags, sorted.

        Args:
            scorer_errors: Completions whose scorer raised.
        """
        steps = self._last
        clipped = sum(step.clipped_ratio for step in steps) / max(len(steps), 1)
        raised = {
            "saturated": bool(steps) and all(step.all_correct for step in steps),
            "scorer_errors": scorer_errors > 0,
            "truncated": clipped > TRUNCATED_SHARE,
        }
        return [flag for flag, holds in raised.items() if holds]
