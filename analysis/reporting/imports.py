"""An imported sweep in words: whose data it is, what the import states, and what it leaves out."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

import pandas as pd

from analysis.claims.comparison import comparisons
from analysis.estimates.curve import LrCurve
from analysis.estimates.optimum import assumed_ratio
from analysis.estimates.search import SearchSummary
from analysis.estimates.stats import MIN_SEEDS
from analysis.reading.arms import arms, rate_text
from analysis.reading.sweep import Sweep
from analysis.reporting.numbers import listed, plural
from study.plan.arms import flatten

SHORT = 12
"""Digits of a hash that a sentence shows."""
SPREADS = (0.07, 0.11)
"""SD over seeds of one arm's best learning rate in decades: sharp and soft cliffs, simulated."""
MAX_ASSUMED = 6
"""Arms whose assumed interval the methods name."""
PLACES = {
    "source": "Source",
    "sha256": "sha256 of the source",
    "history": "Measurements over steps",
    "history_sha256": "sha256 of the measurements",
    "worst_score": "Score of a run without one",
    "command": "Imported by",
}
FACTS = {
    "score_base": "the score of the untrained model",
    "dtypes": "precision",
    "lora_alpha": "LoRA alpha",
    "target_modules": "the adapted modules",
    "prompts_per_step": "batch size",
    "steps_planned": "training steps",
    "eval_prompts": "evaluation prompts",
    "trainable_params": "trained parameters",
    "train_flops": "FLOPs",
    "wall_time_s": "wall time",
    "model_revision": "model revision",
    "git_commit": "commit",
}
"""Columns of a run that a reviewer asks for, in words."""


def import_block(sweep: Sweep) -> Mapping[str, Any]:
    """What the import wrote down about itself; empty where it wrote nothing."""
    block = sweep.plan.get("import")
    return block if isinstance(block, dict) else {}


def source_line(sweep: Sweep) -> str:
    """Whose data it is: source, hash, rows."""
    block = import_block(sweep)
    facts = [f"sha256 {str(block['sha256'])[:SHORT]}"] if block.get("sha256") else []
    if isinstance(block.get("rows"), int):
        facts.append(plural(block["rows"], "row"))
    if block.get("left_out"):
        facts.append(f"{block['left_out']:,} left out")
    source = str(block.get("source", sweep.name))
    name = PurePath(source).name if PurePath(source).suffix else source
    return f"Imported, run by others: {name} ({', '.join(facts)})."


def import_methods(sweep: Sweep, search: SearchSummary) -> list[str]:
    """What the import states about the runs, and in one sentence what it does not."""
    score = import_block(sweep).get("column_map", {}).get("score_final", sweep.score_metric)
    better = "lower" if sweep.direction == "minimize" else "higher"
    sentences = [
        f"A run's score is {score} as imported; {better} is better.",
        _settings_sentence(sweep),
        grid_sentence(sweep),
        _seeds_sentence(sweep),
        _silence(sweep),
        *_assumed(sweep, search),
    ]
    return [sentence for sentence in sentences if sentence]


def _settings_sentence(sweep: Sweep) -> str:
    """Settings that all arms share, as the import has them."""
    configs = [flatten(arm["config"]) for arm in sweep.plan["arms"].values()]
    keys = [key for key in configs[0] if not key.startswith("method.")] if configs else []
    shared = [key for key in keys if len({str(config.get(key)) for config in configs}) == 1]
    stated = [f"{key} {configs[0][key]}" for key in shared]
    return f"All runs: {', '.join(stated)}." if stated else ""


def grid_sentence(sweep: Sweep) -> str:
    """How many arms there are, and the learning rates that they ran at."""
    found = arms(sweep)
    grids = {arm.name: sorted(sweep.plan["arms"][arm.name]["learning_rates"]) for arm in found}
    sizes = sorted({len(grid) for grid in grids.values()})
    ends = [rate for grid in grids.values() for rate in (grid[0], grid[-1])]
    span = f"{rate_text(min(ends))} to {rate_text(max(ends))}"
    size = f"{sizes[0]}" if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"
    return f"{plural(len(found), 'arm')} at {size} learning rates each, from {span}."


def _seeds_sentence(sweep: Sweep) -> str:
    counts = sorted(set(sweep.runs.groupby("arm")["seed"].nunique()))
    if not counts:
        return ""
    number = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    text = f"{number} {'seed' if counts == [1] else 'seeds'} an arm"
    if "seed" in import_block(sweep).get("column_map", {}):
        return f"{text}."
    return f"{text}: the source names no seed."


def _silence(sweep: Sweep) -> str:
    unstated = [words for column, words in FACTS.items() if not _stated(sweep.runs[column])]
    return f"The import does not state {listed(unstated)}." if unstated else ""


def _stated(values: pd.Series[Any]) -> bool:
    return any(_has(value) for value in values)


def _has(value: object) -> bool:
    if isinstance(value, list | dict | str):
        return bool(value)
    return value is not None and not bool(pd.isna(value))  # type: ignore[call-overload]


def _assumed(sweep: Sweep, search: SearchSummary) -> list[str]:
    """What an assumed spread over seeds would make of the ratios of arms with too few seeds."""
    curves = search.curves
    pairs = [
        pair for pair in comparisons(sweep) if pair.baseline and set(pair.names) <= set(curves)
    ]
    thin = [pair for pair in pairs if min(curves[n].n_seeds for n in pair.names) < MIN_SEEDS]
    said = []
    for pair in thin[:MAX_ASSUMED]:
        lora, full = (curves[name] for name in pair.names)
        intervals = _intervals(lora, full, search.fraction_of(*pair.names))
        if intervals:
            said.append(f"{pair.arm.name} over {full.arm} {intervals}")
    if not said:
        return []
    return [
        "One seed cannot carry a seed interval. With an assumed SD between seeds of "
        f"{SPREADS[0]} to {SPREADS[-1]} decades of each arm's best learning rate, the ratios would "
        f"be: {'; '.join(said)}: assumed, not measured."
    ]


def _intervals(lora: LrCurve, full: LrCurve, fraction: float) -> str:
    found = [assumed_ratio(lora, full, fraction, tau) for tau in SPREADS]
    if any(estimate.interval is None for estimate in found):
        return ""
    narrow, wide = (estimate.interval or (0.0, 0.0) for estimate in found)
    point = f"{found[0].point:.1f}"
    return f"{point} [{narrow[0]:.1f}, {narrow[1]:.1f}] to [{wide[0]:.1f}, {wide[1]:.1f}]"


def import_lines(sweep: Sweep) -> list[str]:
    """The import block for the provenance, a line a fact."""
    block = import_block(sweep)
    lines = [f"{words}: {block[key]}" for key, words in PLACES.items() if block.get(key)]
    if block.get("constants"):
        stated = ", ".join(f"{key} {value}" for key, value in block["constants"].items())
        lines.append(f"Stated by whoever imported it: {stated}")
    return lines + [f"{text[0].upper()}{text[1:]}" for text in block.get("resolved", []) if text]
