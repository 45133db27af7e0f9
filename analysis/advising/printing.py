"""The advice for a terminal: what to paste last, what it rests on before."""

from __future__ import annotations

from collections.abc import Iterator

from analysis.advising.advice import Advice
from analysis.advising.disagreement import shown
from analysis.advising.grid import COARSE, FINE, Grid
from analysis.advising.own import OwnArm
from analysis.advising.paste import command
from analysis.advising.published import Sourced
from analysis.advising.ranks import PUBLISHED, RankVerdict
from analysis.comparing import text
from analysis.reading.arms import rate_text


def lines(found: Advice) -> Iterator[str]:
    """Everything, line by line."""
    yield _headline(found)
    yield ""
    if found.rates.own:
        yield "Your sweeps (best learning rate LR*, nearest arm first):"
        for arm, carried in found.rates.own:
            yield from _own(arm, carried)
    elif found.sweeps:
        yield f"Your sweeps have no arm of method {found.model.method}."
    else:
        yield "No sweep of yours was given: name directories to have them used."
    yield ""
    yield f"Published learning rates ({found.model.method}):"
    for rate in found.rates.published:
        yield from _published(rate, rate_text)
    yield ""
    yield "LoRA's LR* over FullFT's:"
    yield from _ratios(found)
    yield ""
    yield from _disagreements(found)
    yield from _rank(found)
    for note in found.notes:
        yield f"Note: {note}"
    if found.notes:
        yield ""
    yield from _plan(found)


def _headline(found: Advice) -> str:
    """The answer in a line: what to run, and what it rests on."""
    model, grid = found.model, found.rates.grid
    what = f"LoRA at rank {found.ranks.rank}" if model.method == "lora" else "full fine-tuning"
    width = "unknown" if model.hidden_size is None else str(model.hidden_size)
    return (
        f"GRPO with {what} (model family {model.family or 'not said'}, hidden size {width}): "
        f"{len(grid.rates)} learning rates from {rate_text(grid.rates[0])} to "
        f"{rate_text(grid.rates[-1])}, {found.seeds.search} search and {found.seeds.report} report "
        f"seeds; from {found.rates.chosen_why}"
    )


def _own(arm: OwnArm, carried: Sourced | None) -> Iterator[str]:
    measured = text.quantity(arm.rate, rate_text)
    why = f" ({arm.rate.reason})" if arm.rate.reason else ""
    yield f"  {arm.label}: {measured}{why}"
    if carried is not None and carried.value != arm.rate.point:
        yield f"    carried over: {shown(carried)} ({carried.range_is})"
    elif carried is not None and carried.interval != arm.rate.interval:
        yield f"    taken as {shown(carried)} ({carried.range_is})"


def _published(found: Sourced, show: text.Show) -> Iterator[str]:
    yield f"  {shown(found, show)}  {found.source}"
    yield f"    range: {found.range_is}" if found.interval else f"    {found.range_is}"
    yield f"    found for: {found.scope}; checked: {found.checked}"


def _ratios(found: Advice) -> Iterator[str]:
    for arm, _ in found.rates.own:
        if arm.ratio is not None:
            why = f" ({arm.ratio.reason})" if arm.ratio.reason else ""
            yield f"  {text.quantity(arm.ratio, text.ratio)}{why}  {arm.label}"
    for ratio in found.ratios:
        yield from _published(ratio, text.ratio)


def _disagreements(found: Advice) -> Iterator[str]:
    if not found.rates.disagreements:
        return
    yield "Your data and what is published disagree:"
    for line in found.rates.disagreements:
        yield f"  {line}"
    yield ""


def _rank(found: Advice) -> Iterator[str]:
    if found.model.method != "lora":
        return
    yield f"Rank: {found.ranks.rank} ({found.ranks.why})"
    for own in found.ranks.own:
        yield f"  rank {own.rank} in {own.sweep}: {_verdict(own)}"
    yield "  published, no interval on any of them unless given:"
    for line in PUBLISHED:
        yield f"    {line}"
    yield ""


def _verdict(own: RankVerdict) -> str:
    verdict = own.verdict
    if verdict.estimate is None or verdict.interval is None:
        why = f"lacks {verdict.missing}" if verdict.missing else verdict.reason.rstrip(".")
        return f"equality with FullFT {verdict.verdict} ({why})"
    low, high = verdict.interval
    return (
        f"equality with FullFT {verdict.verdict}, difference {verdict.estimate:+.3f} "
        f"[{low:+.3f}, {high:+.3f}] n={verdict.n_seeds}"
    )


def _plan(found: Advice) -> Iterator[str]:
    grid, seeds = found.rates.grid, found.seeds
    yield (
        f"Grid: {_grid(grid)}, around {shown(found.rates.chosen)} "
        f"({found.rates.chosen_why}; {found.rates.chosen.range_is})"
    )
    yield f"Search seeds: {seeds.search} ({seeds.search_why})"
    yield f"Report seeds: {seeds.report} ({seeds.report_why})"
    yield ""
    yield "To paste, an experiment that compares with FullFT (both grids equal in step and count):"
    yield f"  {command(found.paste.experiment)}"
    yield "or this arm alone, without verdicts:"
    yield f"  {command(found.paste.arm)}"


def _grid(grid: Grid) -> str:
    step = {FINE: "a quarter of a decade", COARSE: "half a decade"}[grid.spacing]
    rates = ", ".join(map(rate_text, grid.rates))
    return f"{len(grid.rates)} rates, {step} apart: {rates}"
