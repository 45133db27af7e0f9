"""The advice as one value: what is known, what it was decided on, and what to paste."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from analysis.advising.disagreement import disagreements
from analysis.advising.grid import HALF_PLATEAU, Grid, aligned, bracket
from analysis.advising.own import OwnArm, OwnSweep, arms_of, nearest_arms, own_sweeps, sourced
from analysis.advising.paste import Paste, paste
from analysis.advising.published import (
    Sourced,
    check_family,
    published_ratio,
    reinforced_rate,
    supervised_rule,
    used_rates,
)
from analysis.advising.ranks import RankAdvice, rank_advice
from analysis.advising.seeds import SeedAdvice, seed_advice
from analysis.claims.comparison import unfinished
from analysis.reading.sweep import Sweep

METHODS = ("full", "lora")
MAX_OWN = 5
"""Own arms that are listed, the nearest first."""
DEFAULT_ALPHA = 32.0
"""Of published rates."""


@dataclass(frozen=True)
class Model:
    """What is asked about; None where it was not said and no sweep tells."""

    method: str
    rank: int | None
    family: str | None
    hidden_size: int | None


@dataclass(frozen=True)
class RateAdvice:
    """Where the best learning rate of one method may lie, and the grid that brackets it."""

    own: tuple[tuple[OwnArm, Sourced | None], ...]
    """The user's arms, the nearest first, each carried over to the asked rank and width."""
    published: tuple[Sourced, ...]
    """RL before supervised."""
    chosen: Sourced
    chosen_why: str
    nearest: OwnArm | None
    """The own arm that was chosen, None if a published rate was."""
    disagreements: tuple[str, ...]
    grid: Grid


@dataclass(frozen=True)
class Advice:
    """Everything that is recommended, with what it rests on."""

    model: Model
    sweeps: tuple[OwnSweep, ...]
    rates: RateAdvice
    ratios: tuple[Sourced, ...]
    """Published LR* of LoRA over FullFT's."""
    ranks: RankAdvice
    seeds: SeedAdvice
    paste: Paste
    notes: tuple[str, ...]


def recommend(
    sweeps: Sequence[Sweep],
    method: str,
    rank: int | None = None,
    family: str | None = None,
    hidden_size: int | None = None,
) -> Advice:
    """A learning-rate grid, a rank and seeds for a method and a model.

    Own sweeps come before published rules, RL before supervised fine-tuning, measured intervals
    before points. Where the two disagree the advice says so.

    Args:
        sweeps: The user's own, in any state; none is fine.
        method: ``full`` or ``lora``.
        rank: Of LoRA; None: advised.
        family: Of the model, for the published rule; None: without it.
        hidden_size: Of the model; None: that of the sweeps, if it is one.

    Raises:
        ValueError: for an unknown method or family, a rank with full fine-tuning, or a rank or
            width below 1.
    """
    _check(method, rank, hidden_size)
    known = check_family(family)
    owned = own_sweeps(sweeps)
    hidden_size = _width_of(owned, method) if hidden_size is None else hidden_size
    ranks = rank_advice(owned, rank, hidden_size)
    model = Model(method, ranks.rank if method == "lora" else None, known, hidden_size)
    advised = {name: _rate_advice(owned, name, ranks.rank, model) for name in METHODS}
    full, lora = aligned(advised["full"].grid, advised["lora"].grid)
    rates, seeds = advised[method], seed_advice(advised[method].grid, owned)
    grids = {"full": full, "lora": lora}
    return Advice(
        model=model,
        sweeps=owned,
        rates=rates,
        ratios=published_ratio(model.rank),
        ranks=ranks,
        seeds=seeds,
        paste=paste(method, ranks.rank, rates.grid, grids, seeds, _same_model(rates, model)),
        notes=tuple(_notes(owned, model, rates)),
    )


def _check(method: str, rank: int | None, hidden_size: int | None) -> None:
    if method not in METHODS:
        raise ValueError(f"--method must be one of {', '.join(METHODS)}, got {method!r}")
    if method == "full" and rank is not None:
        raise ValueError(f"--rank is read with --method lora only, got {rank}")
    for name, value in (("--rank", rank), ("--hidden-size", hidden_size)):
        if value is not None and value < 1:
            raise ValueError(f"{name} >= 1 must hold, got {value}")


def _same_model(rates: RateAdvice, model: Model) -> OwnArm | None:
    """The own arm the grid is laid around, if it is as wide as the asked model."""
    nearest = rates.nearest
    return nearest if nearest and nearest.facts.hidden_size == model.hidden_size else None


def _width_of(owned: Sequence[OwnSweep], method: str) -> int | None:
    """The hidden size of the own arms of a method, where all of them have one and the same."""
    widths = {facts.hidden_size for _, facts in arms_of(owned, method)}
    return widths.pop() if len(widths) == 1 else None


def _rate_advice(owned: Sequence[OwnSweep], method: str, rank: int, model: Model) -> RateAdvice:
    nearest = nearest_arms(owned, method, rank if method == "lora" else None, model.hidden_size)
    own = tuple(
        (arm, sourced(arm, rank, model.hidden_size, model.family)) for arm in nearest[:MAX_OWN]
    )
    published = _published(method, rank, model)
    nearest_arm = next(((a, x) for a, x in own if x is not None and not a.supervised), None)
    chosen, why, half = _choose(nearest_arm, published)
    return RateAdvice(
        own=own,
        published=published,
        chosen=chosen,
        chosen_why=why,
        nearest=nearest_arm[0] if nearest_arm else None,
        disagreements=tuple(disagreements(own, published, published_ratio(rank))),
        grid=bracket(*(chosen.interval or (chosen.value, chosen.value)), half),
    )


def _published(method: str, rank: int, model: Model) -> tuple[Sourced, ...]:
    found = [reinforced_rate(method, rank, model.family, model.hidden_size), used_rates(method)]
    if model.family is not None and model.hidden_size is not None:
        found.append(supervised_rule(method, model.family, model.hidden_size))
    return tuple(found)


def _choose(
    nearest: tuple[OwnArm, Sourced] | None, published: Sequence[Sourced]
) -> tuple[Sourced, str, float]:
    """The number that the grid is laid around, why, and half its plateau in decades."""
    if nearest is None:
        why = "the public RL sweep: no own sweep has a best rate for this method in RL"
        return published[0], why, HALF_PLATEAU
    arm, found = nearest
    return found, f"your own sweep, nearest arm: {arm.facts.name}", _half_plateau(arm)


def _half_plateau(arm: OwnArm) -> float:
    """Half of the measured plateau, by its upper bound where it has an interval."""
    width = arm.width
    if width is None or width.interval is None:
        return HALF_PLATEAU
    return max(width.interval[1], 0.0) / 2


def _notes(owned: Sequence[OwnSweep], model: Model, rates: RateAdvice) -> list[str]:
    notes = []
    if model.family is None or model.hidden_size is None:
        options = {"--model-family": model.family, "--hidden-size": model.hidden_size}
        lacking = [option for option, value in options.items() if value is None]
        notes.append(f"The supervised rule needs {' and '.join(lacking)}.")
    for own in owned:
        if unfinished(own.sweep) is not None:
            runs = f"{len(own.sweep.runs)} of {own.sweep.expected} runs"
            notes.append(f"{own.label} is unfinished ({runs}): its numbers may change.")
    for arm, found in rates.own:
        alpha = arm.facts.alpha
        if found is not None and alpha is not None and alpha != DEFAULT_ALPHA:
            notes.append(
                f"{arm.label} ran at alpha {alpha:g}, published rates are for {DEFAULT_ALPHA:g}: "
                "compare alpha x learning rate, and keep that sweep's alpha with its rates."
            )
    if any(arm.supervised for arm, _ in rates.own):
        notes.append("Arms of supervised fine-tuning are listed and not used for an RL grid.")
    return notes
