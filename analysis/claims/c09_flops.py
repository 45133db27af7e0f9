"""C9: LoRA needs 2/3 + 2 r / N of full fine-tuning's training FLOPs per token."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analysis.claims.claim import Claim
from analysis.claims.comparison import Comparison, exploratory, lacks_baseline, pairs
from analysis.claims.costs import by_seed, chosen_runs, numbers, phase, records
from analysis.claims.facts import hidden_size, layer_set
from analysis.claims.groups import model_and_task
from analysis.claims.verdict import (
    REFUTED,
    SUPPORTED,
    UNDECIDED,
    Decision,
    Obstacle,
    Verdict,
    decided,
    missing_seeds,
    more_seeds,
    seeds_text,
    undecided,
)
from analysis.estimates.search import SearchSummary
from analysis.estimates.stats import MIN_SEEDS, Contrast, Estimate, mean_contrast
from analysis.reading.arms import Arm
from analysis.reading.sweep import Sweep
from study.plan.flops import square_ratio

MARGIN = 0.02
"""Share of the closed form within which the exact sum counts as equal to it."""
PER_TOKEN = ("train_flops", "train_tokens")
SAMPLED = "rollout_flops"
EVALUATED = "probes.evaluation_flops"


@dataclass(frozen=True)
class _Ratio:
    """LoRA's FLOPs per trained token over FullFT's, paired by seed."""

    training: Contrast
    with_sampling: float | None
    """Rollouts included; None where they are not recorded."""
    with_evaluation: float | None
    """Held-out evaluations included too."""
    phase: str

    @property
    def estimate(self) -> Estimate:
        """With its interval, from three seeds on. It is a sum and no sample: equal seeds are exact.

        What spreads it is the length of the completions alone.
        """
        found = self.training.estimate()
        if self.training.n < MIN_SEEDS or self.training.has_spread:
            return found
        return Estimate(found.point, found.point, found.point, found.n)


def _asked(sweep: Sweep) -> list[tuple[Comparison, Arm, float]]:
    """LoRA arms on all layers with their baselines, and the closed form of each."""
    found = []
    for pair in pairs(sweep):
        width = hidden_size(sweep, pair.arm)
        if pair.baseline is None or width is None or pair.arm.rank is None:
            continue
        if layer_set(sweep, pair.arm) == "all":
            found.append((pair, pair.baseline, square_ratio(pair.arm.rank, width)))
    return found


def _lacks(sweep: Sweep) -> str:
    lack = lacks_baseline(sweep)
    if not lack and not _asked(sweep):
        lack = "a LoRA arm on all layers, and the hidden size of its model"
    if not lack and not records(sweep, PER_TOKEN):
        lack = "records of training FLOPs and of the tokens they were for"
    return lack


def check(sweep: Sweep, search: SearchSummary) -> list[Verdict]:
    """One verdict per LoRA arm on all layers, against its FullFT baseline.

    Args:
        sweep: An experiment with such arms, whose runs recorded their FLOPs.
        search: Of the same sweep; not needed, for nothing here depends on a score.
    """
    return [_check(sweep, *asked) for asked in _asked(sweep)]


def _check(sweep: Sweep, pair: Comparison, baseline: Arm, closed: float) -> Verdict:
    arm = pair.arm
    statement = (
        f"{arm.description} needs 2/3 + 2r/N = {closed:.3f} of {baseline.description}'s training "
        f"FLOPs per token, within {MARGIN:.0%}: {model_and_task(sweep, arm)}."
    )
    found = exploratory(sweep) or pair.obstacle or _measure(sweep, arm, baseline)
    if isinstance(found, Obstacle):
        return undecided("C9", statement, pair.names, found)
    flags = () if found.estimate.interval else ("few_seeds",)
    return decided("C9", statement, pair.names, _decide(found, closed), found.estimate, flags)


def _measure(sweep: Sweep, arm: Arm, baseline: Arm) -> _Ratio | Obstacle:
    own, other = (_per_token(sweep, one, ()) for one in (arm, baseline))
    seeds = sorted(own.keys() & other.keys())
    if not seeds:
        return Obstacle(
            "incomplete",
            f"{arm.name} and {baseline.name} share no completed {phase(sweep)} seed whose FLOPs "
            "are recorded: run some.",
            f"{phase(sweep)} seeds that {arm.name} and {baseline.name} share",
        )
    ratios = np.array([own[seed] / other[seed] for seed in seeds])
    return _Ratio(
        mean_contrast(ratios),
        _mean_ratio(sweep, arm, baseline, (SAMPLED,)),
        _mean_ratio(sweep, arm, baseline, (SAMPLED, EVALUATED)),
        phase(sweep),
    )


def _mean_ratio(sweep: Sweep, arm: Arm, baseline: Arm, more: tuple[str, ...]) -> float | None:
    own, other = (_per_token(sweep, one, more) for one in (arm, baseline))
    shared = own.keys() & other.keys()
    return float(np.mean([own[seed] / other[seed] for seed in shared])) if shared else None


def _per_token(sweep: Sweep, arm: Arm, more: tuple[str, ...]) -> dict[int, float]:
    """FLOPs of training and of ``more``, per trained token, by seed."""
    rows = chosen_runs(sweep, arm)
    flops, tokens = (numbers(rows, name) for name in PER_TOKEN)
    for name in more:
        flops = flops + numbers(rows, name)
    return by_seed(rows, (flops / tokens)[(flops > 0) & (tokens > 0)])


def _decide(found: _Ratio, closed: float) -> Decision:
    interval, n = found.estimate.interval, found.training.n
    beside = _beside(found)
    if interval is None:
        more = MIN_SEEDS - n
        reason = (
            f"The ratio {found.estimate.point:.3f} has no interval with fewer than {MIN_SEEDS} "
            f"{found.phase} seeds: at least {seeds_text(more, found.phase)}.{beside}"
        )
        return Decision(UNDECIDED, reason, seeds_text(more, found.phase))
    low, high = closed * (1 - MARGIN), closed * (1 + MARGIN)
    number = (
        f"The ratio {found.estimate.point:.3f} [{interval[0]:.3f}, {interval[1]:.3f}] "
        f"({n} {found.phase} seeds)"
    )
    bounds = f"[{low:.3f}, {high:.3f}]"
    if low <= interval[0] and interval[1] <= high:
        return Decision(SUPPORTED, f"{number} lies inside {bounds}.{beside}")
    if interval[1] < low or interval[0] > high:
        return Decision(
            REFUTED,
            f"{number} lies wholly outside {bounds}: the closed form is the limit of many square "
            "layers, without output head, attention and what the first block saves under LoRA."
            f"{beside}",
        )
    bound = min(abs(found.training.point - low), abs(found.training.point - high))
    needed = found.training.seeds_for(bound)
    return Decision(
        UNDECIDED,
        f"{number} crosses a bound of {bounds}: {more_seeds(needed, n, found.phase)}.{beside}",
        missing_seeds(needed, n, found.phase),
    )


def _beside(found: _Ratio) -> str:
    """What remains of the saving from end to end."""
    if found.with_sampling is None:
        return " Sampling is not recorded, so there is no end-to-end ratio."
    text = f" End to end, with sampling, the ratio is {found.with_sampling:.3f}"
    if found.with_evaluation is not None:
        text += f"; with held-out evaluation too, {found.with_evaluation:.3f}"
    return text + "."


CLAIM = Claim(
    claim_id="C9",
    title="flops",
    statement=(
        "LoRA of rank r on all layers needs 2/3 + 2r/N of full fine-tuning's training FLOPs per "
        "token, N being the model's hidden size."
    ),
    criterion=(
        "FLOPs are sums over every matrix product of the tokens a run trained on, head and "
        "attention included, without gradients that nothing asks for; torch's counter gives the "
        "same sums. Supported if the 90 % interval of LoRA's over FullFT's per token lies within "
        "2 % of the closed form, which is the limit of many square layers; refuted if wholly "
        "outside. The ratio with sampling stands beside it and decides nothing."
    ),
    unit="ratio",
    question="How much compute does LoRA save?",
    lacks=_lacks,
    check=check,
)
