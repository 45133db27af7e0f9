"""When steps and evaluations of a pack end."""

from __future__ import annotations

import itertools
import statistics
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

from study.train.engine import Evaluation, Outcome


@dataclass(frozen=True)
class Moment:
    """A point in time, or a duration."""

    wall_s: float
    busy_s: float
    """Busy time of this process, see :mod:`study.bench`."""

    def __sub__(self, other: Moment) -> Moment:
        return Moment(self.wall_s - other.wall_s, self.busy_s - other.busy_s)


def now() -> Moment:
    """The present, once a GPU has done what it was told to do."""
    if uses_gpu():
        import torch

        torch.cuda.synchronize()
        return Moment(time.perf_counter(), time.perf_counter())
    return Moment(time.perf_counter(), time.process_time())


@cache
def uses_gpu() -> bool:
    """Whether the engines train on a GPU."""
    import torch

    return torch.cuda.is_available()


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One call of an engine; times are seconds per run."""

    step_s: float
    """Median wall time of a run-step."""
    step_busy_s: float
    """Median busy time of a run-step: what it would take if nobody else wanted the core."""
    evaluation_s: float
    """Wall time of the evaluation after the last step."""
    unequal_share: float
    """Share of groups with unequal rewards."""
    completion_tokens: float
    """Mean length of a completion, end token included."""


class Stopwatch:
    """A sink that notes when the last lane of a pack ends a step or an evaluation."""

    def __init__(self, lanes: int, clock: Callable[[], Moment] = now) -> None:
        """Build the watch.

        Args:
            lanes: Runs of the pack.
            clock: What tells the time.
        """
        self._lanes, self._clock = lanes, clock
        self._steps: dict[int, Moment] = {}
        self._evaluations: dict[int, Moment] = {}
        self._counts: Counter[int] = Counter()
        self._metrics: list[tuple[int, dict[str, float]]] = []
        self._outcomes: list[Outcome] = []

    def log(self, run_id: str, step: int, metrics: Mapping[str, float]) -> None:
        """Note a step.

        Raises:
            RuntimeError: if a lane runs ahead of the others: there is no step of the pack then.
        """
        if step > 1 and self._counts[step - 1] < self._lanes:
            raise RuntimeError(f"run {run_id} ended step {step} before others ended {step - 1}")
        self._counts[step] += 1
        self._steps[step] = self._clock()
        self._metrics.append((step, dict(metrics)))

    def evaluation(self, run_id: str, evaluation: Evaluation) -> None:
        """Note an evaluation."""
        self._evaluations[evaluation.step] = self._clock()

    def alive(self, run_id: str) -> None:
        """Nobody waits."""

    def stops_early(self, run_id: str, step: int) -> str | None:
        """Let every run go on."""
        return None

    def ended(self, outcome: Outcome) -> None:
        """Keep the outcome."""
        self._outcomes.append(outcome)

    def failed(self, run_id: str, error: Exception) -> None:
        """Let what failed a run end the measurement."""
        raise error

    def sample(self, warm_up: int) -> Sample:
        """What was measured, the first ``warm_up`` steps left out of the times.

        Raises:
            RuntimeError: if a run did not complete, or too few steps were made.
        """
        self._check()
        last = max(self._steps)
        ends = [self._steps[step] for step in range(warm_up, last + 1) if step > 0]
        laps = [b - a for a, b in itertools.pairwise(ends)]
        if not laps:
            raise RuntimeError(f"{last} steps leave nothing to time after {warm_up}")
        evaluation = self._evaluations[last] - self._steps[last]
        return Sample(
            step_s=statistics.median(lap.wall_s for lap in laps) / self._lanes,
            step_busy_s=statistics.median(lap.busy_s for lap in laps) / self._lanes,
            evaluation_s=evaluation.wall_s / self._lanes,
            unequal_share=1 - self._mean("train/frac_reward_zero_std", warm_up),
            completion_tokens=self._mean("train/completion_length", warm_up),
        )

    def _check(self) -> None:
        for outcome in self._outcomes:
            if outcome.status != "completed":
                raise RuntimeError(f"a run ended as {outcome.status}: {outcome.status_reason}")
        if len(self._outcomes) != self._lanes:
            raise RuntimeError(f"{len(self._outcomes)} of {self._lanes} runs have an outcome")

    def _mean(self, name: str, warm_up: int) -> float:
        values = [metrics[name] for step, metrics in self._metrics if step > warm_up]
        return statistics.fmean(values)
