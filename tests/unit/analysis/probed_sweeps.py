"""Simulated experiments whose report runs have a ``probes.json`` with chosen numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from analysis.reading.sweep import Sweep
from study.records.files import write_json
from tests.unit.analysis.claims.worlds import world
from tests.unit.analysis.simulated_sweeps import MED, experiment

PARAMETERS = 1000
HALF = {"model": {"name": "lab64", "dtype": "bfloat16"}}
SFT = {"objective": {"name": "sft", "learning_rate": 1e-4}}
CHANCE = {"largest_on_principal": 1.0, "angle_left_mean_deg": 2.0, "angle_right_mean_deg": 4.0}
CHANCE |= {"spectral_shift": 0.5, "effective_rank_share": 0.8, "energy_top_1": 0.1}


def measured(
    fp32: int | None = 0, bf16: int = 0, observed: Mapping[str, float] | None = None
) -> dict[str, Any]:
    """The part ``weights``: unchanged weights of a thousand, and statistics beside chance."""
    values = {**CHANCE, "numerical_rank_share": 1.0, "stable_rank": 3.0, **(observed or {})}
    means = {name: {"mean": mean, "low": 0.0, "high": 9.0} for name, mean in CHANCE.items()}
    summary = {"observed": values, "null": {"gaussian": means, "turned": means}}
    counts = {"parameters": PARAMETERS, "bf16": bf16, "absolute": bf16, "relative": bf16}
    return {
        "dtype": "bfloat16" if fp32 is None else "float32",
        "trained": {**counts, "fp32": fp32},
        "overall": summary,
        "by_module": {"q_proj": summary},
        "by_depth": {"0": summary, "10": summary, "2": summary},
    }


def probed_sweep(
    path: Path, arms: Mapping[str, Sequence[dict[str, Any] | None]], **settings: Any
) -> Sweep:
    """Arms like ``lora-r4`` with the part ``weights`` of each report seed, None where none is."""
    curves = world(dict.fromkeys(arms, MED))
    seeds = len(next(iter(arms.values())))
    report = {name: [0.5 + 0.01 * i for i in range(seeds)] for name in arms}
    found = experiment(curves, report, **settings)
    runs = found.runs[found.runs["phase"] == "report"]
    for arm, run_id, seed in zip(runs["arm"], runs["run_id"], runs["seed"], strict=True):
        part = arms[arm][seed - 100]
        if part is not None:
            content = {"schema_version": 2, "run_id": run_id, "weights": part}
            write_json(path / arm / run_id / "probes.json", content)
    return replace(found, path=path)
