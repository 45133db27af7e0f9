"""From the evaluations of a run to its scores; one rule for every method."""

from collections.abc import Sequence
from dataclasses import dataclass

from study.train.engine import Evaluation

WORST_ACCURACY = 0.0


@dataclass(frozen=True)
class Scores:
    """Scores of one run, accuracies in [0, 1].

    Attributes:
        final: Mean sampled accuracy over the last evaluations.
        best: Best single sampled accuracy after step 0: optimistic.
        base: Sampled accuracy of the untrained model.
        greedy: Mean greedy accuracy over the same evaluations as `final`.
    """

    final: float | None
    best: float | None
    base: float | None
    greedy: float | None


def run_scores(status: str, evaluations: Sequence[Evaluation], window: int) -> Scores:
    """Scores a run by its status.

    A completed run scores the mean of its last `window` evaluations after step 0. A diverged
    run scores the worst value, whatever it reached before; its best evaluation is kept
    beside that. A run without signal has no score but the base's. A pruned run's score is
    censored: what it would have reached is unknown, and only its best so far is kept.

    Args:
        status: ``completed``, ``diverged``, ``no_signal`` or ``pruned``.
        evaluations: The run's evaluations by step; the one at step 0 is the base's.
        window: Evaluations behind the final score.
    """
    base = next((e.accuracy for e in evaluations if e.step == 0), None)
    after = [e for e in evaluations if e.step > 0]
    if status == "no_signal":
        return Scores(final=None, best=None, base=base, greedy=None)
    best = max((e.accuracy for e in after), default=WORST_ACCURACY)
    if status == "diverged":
        return Scores(final=WORST_ACCURACY, best=best, base=base, greedy=WORST_ACCURACY)
    if status == "pruned":
        return Scores(final=None, best=best, base=base, greedy=None)
    assert status == "completed", status
    assert len(after) >= window, f"{window} evaluations after step 0 expected, got {len(after)}"
    last = after[-window:]
    return Scores(
        final=sum(e.accuracy for e in last) / window,
        best=best,
        base=base,
        greedy=sum(e.greedy_accuracy for e in last) / window,
    )
