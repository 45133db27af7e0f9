"""``python -m analysis simulate``: how many seeds a study needs, before paying for them."""

from __future__ import annotations

import math
from argparse import ArgumentParser, Namespace
from dataclasses import replace
from pathlib import Path

import numpy as np

from analysis.estimates.power import POWER, pooled_tost_power, seeds_for_margin, tost_power
from analysis.estimates.stats import MAX_SEEDS
from analysis.simulate.draws import Design
from analysis.simulate.rates import Rate, ratio_rates
from analysis.simulate.regimes import SHAPES, Regime
from analysis.simulate.store import rank_arms, write_experiment

HELP = "ask how many seeds a study needs, by simulating it"
EXAMPLES = """\
  python -m analysis simulate --seeds 3 5 10 --ratio 10   does C3 get decided, and rightly?
  python -m analysis simulate --margin 0.02 --noise 0.01  report seeds that parity needs
  python -m analysis simulate --write runs/synthetic      one synthetic experiment to report on
"""
OF_CURVES = {
    "shape": "clear",
    "spacing": 0.25,
    "points": 9,
    "eval_prompts": 1000,
    "ratio": 10.0,
    "replications": 400,
}
"""Defaults of what describes learning-rate curves; none of it is read with ``--margin``."""
NOISE = 0.01
PARITY_COLUMNS = ("equal arms", "half a margin", "equal, pooled")
LEGEND = """
stated: sweeps that give an interval; none does with fewer than 3 seeds or 5 learning rates, or if
        the grid does not reach beyond both ends of the plateau.
covers: intervals that hold the true ratio (90 is nominal).
width:  median factor from the point to an end of the interval.
right:  C3 verdicts that are true; the others are undecided or wrong."""


def add_arguments(parser: ArgumentParser) -> None:
    """The design, the truth, and what to do with them."""
    parser.add_argument(
        "--seeds", type=int, nargs="+", default=[3, 5, 10], metavar="N", help="default: 3 5 10"
    )
    parser.add_argument(
        "--noise", type=float, default=NOISE, metavar="SD", help=f"of a run over seeds ({NOISE})"
    )
    parser.add_argument("--shape", choices=SHAPES, help="of the curves (clear: a clear cliff)")
    parser.add_argument("--spacing", type=float, metavar="DECADES", help="of the grid (0.25)")
    parser.add_argument("--points", type=int, metavar="N", help="learning rates per arm (9)")
    parser.add_argument("--eval-prompts", type=int, metavar="N", help="of an evaluation (1000)")
    parser.add_argument("--ratio", type=float, help="true LR*(LoRA) / LR*(FullFT) (10)")
    parser.add_argument("--replications", type=int, metavar="N", help="simulated sweeps (400)")
    parser.add_argument("--rng-seed", type=int, default=0, metavar="N", help="of every draw (0)")
    doing = parser.add_mutually_exclusive_group()
    doing.add_argument(
        "--margin", type=float, help="ask about parity of scores instead, within this margin"
    )
    doing.add_argument(
        "--write", type=Path, metavar="DIR", help="write one synthetic experiment instead"
    )


def run(options: Namespace) -> None:
    """Print one table, or write one experiment."""
    _check(options)
    if options.margin is not None:
        _print_parity(options)
        return
    for name, default in OF_CURVES.items():
        if getattr(options, name) is None:
            setattr(options, name, default)
    if options.write is not None:
        _write(options)
    else:
        _print_ratios(options)


def _check(options: Namespace) -> None:
    if min(options.seeds) < 1:
        raise ValueError(f"--seeds >= 1 must hold, got {min(options.seeds)}")
    given = [name for name in OF_CURVES if getattr(options, name) is not None]
    if options.margin is not None and given:
        raise ValueError(f"--{given[0].replace('_', '-')} is not read with --margin; drop it")
    if options.write is not None and options.replications is not None:
        raise ValueError("--replications is not read with --write; drop it")


def _print_ratios(options: Namespace) -> None:
    truth = SHAPES[options.shape]
    design = Design(
        spacing=options.spacing,
        points=options.points,
        noise=options.noise,
        eval_prompts=options.eval_prompts,
    )
    print(
        f"{options.replications} simulated sweeps each, true ratio {options.ratio:g}, shape "
        f"{options.shape}, {options.points} learning rates {options.spacing:g} decades apart.\n"
        "Shares in % with their Monte-Carlo error. C3: is the ratio in [5, 20]?\n"
    )
    names = ("seeds", "runs/arm", "stated", "covers", "width", "supported", "refuted", "right")
    print("".join(f"{name:>12}" for name in names))
    for seeds in options.seeds:
        rng = np.random.default_rng((options.rng_seed, seeds))
        regime = Regime(truth, truth, replace(design, seeds=seeds))
        found = ratio_rates(
            regime, options.replications, rng, ratios=(options.ratio,), progress=True
        )
        cells = (
            str(seeds),
            str(seeds * options.points),
            _share(found.stated),
            _share(found.covers),
            f"x{10 ** (found.width / 2):.2f}" if found.stated.share else "-",
            _share(found.supported[options.ratio]),
            _share(found.refuted[options.ratio]),
            _share(found.correct(options.ratio)),
        )
        print("".join(f"{cell:>12}" for cell in cells))
    print(LEGEND)


def _share(rate: Rate) -> str:
    return "-" if math.isnan(rate.share) else f"{100 * rate.share:.0f} ±{100 * rate.error:.1f}"


def _print_parity(options: Namespace) -> None:
    margin, sd = options.margin, options.noise
    needed = seeds_for_margin(margin, sd)
    half = seeds_for_margin(margin, sd, difference=margin / 2)
    print(
        f"Parity within ±{margin:g} by two one-sided paired t tests at 5 %, run SD {sd:g} "
        "(evaluation noise included).\nShare supported in %, exact. Pooled: the run SD from six "
        "cells of the plateau, as decides where it may.\n"
    )
    print("".join(f"{name:>16}" for name in ("report seeds", *PARITY_COLUMNS)))
    for seeds in options.seeds:
        cells = _parity_cells(seeds, margin, sd) if seeds > 1 else ["-"] * len(PARITY_COLUMNS)
        print("".join(f"{cell:>16}" for cell in (str(seeds), *cells)))
    print(
        f"\nFor {100 * POWER:.0f} %: {_seeds(needed)} if the arms are equal, {_seeds(half)} if "
        "they differ by half a margin (paired t)."
    )


def _parity_cells(seeds: int, margin: float, sd: float) -> list[str]:
    powers = (
        tost_power(seeds, margin, sd),
        tost_power(seeds, margin, sd, margin / 2),
        pooled_tost_power(seeds, margin, sd, df=6 * (seeds - 1)),
    )
    return [f"{100 * power:.0f}" for power in powers]


def _seeds(needed: int | None) -> str:
    return f"more than {MAX_SEEDS} report seeds" if needed is None else f"{needed} report seeds"


def _write(options: Namespace) -> None:
    arms = rank_arms(
        ratio=options.ratio,
        spacing=options.spacing,
        points=options.points,
        truth=SHAPES[options.shape],
    )
    path = write_experiment(
        options.write,
        arms,
        search_seeds=options.seeds[0],
        noise=options.noise,
        eval_prompts=options.eval_prompts,
        rng_seed=options.rng_seed,
        progress=True,
    )
    print(path)
