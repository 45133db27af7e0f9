"""Where the user's own data and what is published disagree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from analysis.advising.own import OwnArm
from analysis.advising.published import Sourced
from analysis.comparing import text
from analysis.reading.arms import rate_text


def shown(found: Sourced, show: text.Show = rate_text) -> str:
    """``3.7e-4 [2.5e-4, 5.7e-4]``, or the point with ``(no interval)``."""
    if found.interval is None:
        return f"{show(found.value)} (no interval)"
    low, high = found.interval
    return f"{show(found.value)} [{show(low)}, {show(high)}]"


def disagreements(
    own: Sequence[tuple[OwnArm, Sourced | None]],
    published: Sequence[Sourced],
    ratios: Sequence[Sourced],
) -> Iterator[str]:
    """Published ranges, or points without one, wholly outside the nearest arm's interval.

    Args:
        own: The user's arms, the nearest first, with their rates carried over.
        published: Published rates of the method.
        ratios: Published ratios to FullFT's best rate.
    """
    measured = ((a, x) for a, x in own if x is not None and a.rate.interval and not a.supervised)
    arm, found = next(measured, (None, None))
    if arm is not None and found is not None and found.interval is not None:
        yield from _outside(published, found.interval, shown(found), arm.label, rate_text)
    with_ratio = ((a, a.ratio) for a, _ in own if a.ratio is not None and a.ratio.interval)
    arm, ratio = next(with_ratio, (None, None))
    if arm is not None and ratio is not None and ratio.interval is not None:
        of_ratio = f"the ratio {text.quantity(ratio, text.ratio)}"
        yield from _outside(ratios, ratio.interval, of_ratio, arm.label, text.ratio)


def _outside(
    rules: Sequence[Sourced], interval: tuple[float, float], mine: str, label: str, show: text.Show
) -> Iterator[str]:
    low, high = interval
    for rule in rules:
        ends = rule.interval or (rule.value, rule.value)
        if ends[0] > high or ends[1] < low:
            side = "above" if ends[0] > high else "below"
            yield (
                f"{rule.source}: {shown(rule, show)}, found for {rule.scope}, lies wholly {side} "
                f"{mine} of {label}; your own data are preferred"
            )
