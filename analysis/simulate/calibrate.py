"""``python -m analysis.simulate.calibrate``: simulate everything and write CALIBRATION.md.

About ten minutes on an idle core. Every rate stands with its Monte-Carlo standard error; the
text around the tables lies in ``calibration_text.md``.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from tqdm import tqdm

from analysis.simulate.draws import Design
from analysis.simulate.length_rates import slope_rates
from analysis.simulate.rates import Rate, RatioRates, rank_free_rates, ratio_rates
from analysis.simulate.regimes import CLEAR, REGIMES, SHARP, SOFT, TALL
from analysis.simulate.score_rates import ScoreRates, parity_rates, score_rates
from analysis.simulate.truths import Truth

SEEDS = (3, 5, 10)
REPLICATIONS = 500
PARITY_REPLICATIONS = 5000
RATIOS = (1.0, 3.0, 5.0, 10.0, 20.0)
HERE = Path(__file__).parent


def main(replications: int = REPLICATIONS, directory: Path = HERE) -> None:
    """Write the page, beside this module unless told otherwise."""
    text = (HERE / "calibration_text.md").read_text(encoding="utf-8")
    for name, rows in _tables(replications):
        marker = f"<!-- {name} -->"
        assert marker in text, marker
        text = text.replace(marker, "\n".join(rows))
    text = text.replace("<!-- replications -->", str(replications))
    (directory / "CALIBRATION.md").write_text(text, encoding="utf-8")


def _tables(replications: int) -> Iterator[tuple[str, list[str]]]:
    names = list(REGIMES)
    cells = {
        (name, seeds): _ratio(name, seeds, replications)
        for name in tqdm(names, desc="ratios", unit="regime")
        for seeds in SEEDS
    }
    yield "intervals", _interval_table(names, cells)
    yield "flanks", _flank_table(names, cells)
    yield "c3", _c3_table(names, cells)
    scores = {
        (name, seeds): _score(name, seeds, replications)
        for name in tqdm(names, desc="scores", unit="regime")
        for seeds in SEEDS
    }
    yield "scores", _score_table(names, scores)
    yield "parity", _parity_table()
    yield "c4", _c4_table(replications)
    yield "c5", _c5_table(replications)


def _rng(*labels: object) -> np.random.Generator:
    """A generator of its own for each cell, so that cells may be run apart."""
    return np.random.default_rng(list(repr(labels).encode()))


def _ratio(name: str, seeds: int, replications: int) -> RatioRates:
    rng = _rng("ratio", name, seeds)
    return ratio_rates(REGIMES[name].with_seeds(seeds), replications, rng, ratios=RATIOS)


def _score(name: str, seeds: int, replications: int) -> ScoreRates:
    rng = _rng("score", name, seeds)
    return score_rates(REGIMES[name].with_seeds(seeds), seeds, replications, rng)


def share(found: Rate) -> str:
    """``97 ±0.8``: per cent and Monte-Carlo standard error."""
    return f"{100 * found.share:.0f} ±{100 * found.error:.1f}" if found.n else "-"


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    head = list(head)
    lines = [head, ["---"] * len(head), *rows]
    return ["| " + " | ".join(line) + " |" for line in lines]


def _by_seeds(*names: str) -> list[str]:
    return [f"{name}, {seeds}" for name in names for seeds in SEEDS]


def _interval_table(names: list[str], cells: dict[tuple[str, int], RatioRates]) -> list[str]:
    def row(name: str) -> list[str]:
        mine = [cells[name, seeds] for seeds in SEEDS]
        ratios = [f"{share(c.covers)} / {c.width:.2f}" for c in mine]
        optima = [f"{share(c.lr_covers)} / {c.lr_width:.2f}" for c in mine]
        biases = [f"{c.bias:+.3f} ±{c.bias_error:.3f}" for c in mine[:1]]
        return [name, *ratios, *optima, *biases]

    return _table(["regime", *_by_seeds("ratio", "LR*"), "bias of the ratio, 3"], map(row, names))


def _flank_table(names: list[str], cells: dict[tuple[str, int], RatioRates]) -> list[str]:
    named = [name for name in names if cells[name, 3].flanks_cover[0].n]
    rows = (
        [name, *(share(cells[name, s].flanks_cover[i]) for i in range(3) for s in SEEDS)]
        + [share(cells[name, s].wider) for s in SEEDS]
        for name in named
    )
    return _table(
        ["regime", *_by_seeds("ramp ratio", "cliff ratio", "width difference", "called wider")],
        rows,
    )


def _c3_table(names: list[str], cells: dict[tuple[str, int], RatioRates]) -> list[str]:
    def row(name: str) -> list[str]:
        mine = [cells[name, seeds] for seeds in SEEDS]
        correct = [[share(c.correct(ratio)) for c in mine] for ratio in (1.0, 3.0, 10.0)]
        false = [
            f"{share(c.supported[3.0])}, {share(c.supported[5.0])}, {share(c.supported[20.0])}"
            for c in mine
        ]
        return [name, *(" / ".join(shares) for shares in correct), *false]

    head = ["regime", "truth 1 refuted, 3/5/10 seeds", "truth 3 refuted", "truth 10 supported"]
    return _table([*head, *_by_seeds("supported at 3, 5, 20")], map(row, names))


def _score_table(names: list[str], cells: dict[tuple[str, int], ScoreRates]) -> list[str]:
    columns = ("report_covers", "report_covers_expected", "cross_covers")
    rows = (
        [name, *(share(getattr(cells[name, s], column)) for column in columns for s in SEEDS)]
        for name in names
    )
    return _table(["regime", *_by_seeds("report", "report, collapses in", "cross-fitted")], rows)


def _parity_table() -> list[str]:
    rows = []
    for seeds in SEEDS:
        for times in (0.0, 0.5, 1.0, 1.5):
            found = parity_rates(
                times * 0.04, 0.04, 0.02, seeds, PARITY_REPLICATIONS, _rng("parity", seeds, times)
            )
            rows.append([str(seeds), f"{times:g} M", *map(share, vars(found).values())])
    return _table(
        ["report seeds", "difference", "paired t: supported", "refuted", "pooled SD: supported",
         "refuted"], rows,
    )  # fmt: skip


def _c4_table(replications: int) -> list[str]:
    rows = []
    for label, arm in (("clear cliff", CLEAR), ("soft cliff", SOFT), ("sharp cliff", SHARP)):
        for spacing, points in ((0.25, 11), (0.5, 7)):
            for seeds in SEEDS:
                row = [label, f"{spacing:g}", str(seeds)]
                for fall in (0.0, 0.3):
                    lora = replace(arm, drift=arm.drift + fall)
                    design = Design(seeds=seeds, spacing=spacing, points=points, offset=0.2)
                    rng = _rng("c4", label, spacing, seeds, fall)
                    found = slope_rates(lora, arm, design, max(1, replications // 2), rng)
                    row += [share(found.covers), f"{found.width:.2f}", share(found.falling)]
                rows.append(row)
    head = [f"slope {s}: {what}" for s in ("0", "-0.3") for what in ("covers", "width", "falling")]
    return _table(["shape", "spacing", "seeds", *head], rows)


def _c5_table(replications: int) -> list[str]:
    situations = {
        "4 ranks, equal": (0.0, 0.0, 0.0, 0.0),
        "2 ranks, exactly 2x apart": (0.0, math.log10(2)),
        "4 ranks, one exactly 2x off": (0.0, 0.0, 0.0, math.log10(2)),
        "4 ranks, one 4x off": (0.0, 0.0, 0.0, math.log10(4)),
    }
    shapes: dict[str, Truth] = {"clear cliff": CLEAR, "soft cliff": SOFT, "u-shape": TALL}
    rows = []
    for label, truth in shapes.items():
        for situation, shifts in situations.items():
            row = [label, situation]
            for seeds in SEEDS:
                truths = [truth.shifted(shift) for shift in shifts]
                rng = _rng("c5", label, situation, seeds)
                design = Design(seeds=seeds, points=10)
                found = rank_free_rates(truths, design, max(1, replications // 2), rng)
                row.append(f"{share(found.supported)} / {share(found.refuted)}")
            rows.append(row)
    return _table(["shape", "truth", *_by_seeds("supported / refuted")], rows)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else REPLICATIONS)
