"""The command lines of an advice, checked against ``study`` by the tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from analysis.advising.grid import Grid
from analysis.advising.own import OwnArm
from analysis.advising.seeds import SeedAdvice
from analysis.reading.arms import rate_text

EXPERIMENT = "quickstart"
EXPERIMENT_RANKS = (1, 8)
"""Ranks that the experiment has arms for already."""
ANY_MODEL = ("model=local", "model.path=DIR")
FIRST_REPORT_SEED = 100


@dataclass(frozen=True)
class Paste:
    """Overrides behind ``python -m study -m``."""

    experiment: tuple[str, ...]
    """An experiment that compares with FullFT: grids equal in spacing and count, as it demands."""
    arm: tuple[str, ...]
    """The asked method alone, over its own grid; drawn without verdicts."""


def paste(
    method: str,
    rank: int,
    grid: Grid,
    grids: Mapping[str, Grid],
    seeds: SeedAdvice,
    nearest: OwnArm | None,
) -> Paste:
    """What to type.

    Args:
        method: Asked for.
        rank: Of LoRA.
        grid: Of the method.
        grids: Of both methods, aligned.
        seeds: How many.
        nearest: The own arm that the grid is laid around, if it is of the asked model.
    """
    model = _model(nearest)
    name = f"lora-r{rank}"
    arm = () if rank in EXPERIMENT_RANKS else (
        f'+experiment.arms.{name}=["method=lora","method.rank={rank}"]',
    )  # fmt: skip
    space = ",".join(f"{key}:{value.override}" for key, value in grids.items())
    report = range(FIRST_REPORT_SEED, FIRST_REPORT_SEED + seeds.report)
    of_rank = (f"method.rank={rank}",) if method == "lora" else ()
    return Paste(
        experiment=(
            f"experiment={EXPERIMENT}",
            "name=my-sweep",
            *model,
            *arm,
            f"space.learning_rate={{{space}}}",
            f"experiment.seeds.search=[{_listed(range(seeds.search))}]",
            f"experiment.seeds.report=[{_listed(report)}]",
        ),
        arm=(
            *model,
            f"method={method}",
            *of_rank,
            f"objective.learning_rate={','.join(map(rate_text, grid.rates))}",
            f"seed={_listed(range(seeds.search))}",
        ),
    )


def _listed(seeds: range) -> str:
    return ",".join(map(str, seeds))


def _model(nearest: OwnArm | None) -> tuple[str, ...]:
    """The model of an own arm; a place to fill in where there is none."""
    if nearest is None:
        return ANY_MODEL
    settings = nearest.facts.settings
    if settings.get("model.source") == "lab":
        return (f"model={settings['model.name']}",)
    path = settings.get("model.path")
    return ("model=local", f"model.path={path}") if path else ANY_MODEL


def command(overrides: tuple[str, ...]) -> str:
    """A command line for a shell: overrides with brackets are quoted."""
    quoted = (f"'{o}'" if set(o) & set('[]{}"~ ') else o for o in overrides)
    return f"python -m study -m {' '.join(quoted)}"
