"""In-memory sweeps for figures: every score and every learning curve follows from a few numbers."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.reading.sweep import (
    EXCLUDED_COLUMNS,
    METRIC_COLUMNS,
    RECORD_COLUMNS,
    Sweep,
    typed_frame,
)

GRID = (2e-5, 6e-5, 2e-4, 6e-4, 2e-3)
SHAPE = (0.20, 0.34, 0.50, 0.46, 0.06)
"""Search means over a grid of five: LR* is well inside, base 0.18."""
BASE = 0.18
OFFSETS = (-0.01, 0.0, 0.01, -0.005, 0.005)
"""What a seed adds to the mean; three seeds leave it as it is, with SD 0.01."""
STEPS = (0, 10, 20, 40, 80, 160)


@dataclass(frozen=True)
class Drawn:
    """One arm: FullFT without a rank, else LoRA on a grid ten times higher."""

    rank: int | None = None
    shift: float = 10.0
    """Factor between its grid and FullFT's; 1 for FullFT."""
    scores: tuple[float, ...] = SHAPE
    report: float | None = 0.5
    targets: str = "all"
    batch: int = 8
    model: str = "lab64"
    hidden: int = 64
    params: float | None = None
    flops: float | None = None

    @property
    def rates(self) -> tuple[float, ...]:
        """Its learning-rate grid."""
        factor = 1.0 if self.rank is None else self.shift
        return tuple(float(f"{factor * rate:.6g}") for rate in GRID[: len(self.scores)])


def sweep_of(
    arms: dict[str, Drawn],
    *,
    seeds: int = 3,
    reports: int = 3,
    kind: str = "experiment",
    direction: str = "maximize",
    metric: str = "eval/accuracy",
    base: float | None = BASE,
    diverged: Collection[str] = (),
    missing: Collection[str] = (),
    records: bool = True,
) -> Sweep:
    """A sweep of these arms.

    Args:
        arms: By name.
        seeds: Search seeds.
        reports: Report seeds at the rate of best mean; 0: there is no report phase.
        kind: Of the experiment.
        direction: ``minimize`` for scores of which lower is better.
        metric: Name of the score.
        base: Score of the untrained model.
        diverged: Ids of runs that diverged half-way and score 0.
        missing: Ids of planned runs without a record.
        records: False: batch, parameters, FLOPs and width were not recorded, as in foreign sweeps.
    """
    rows, metrics = [], []
    for name, arm in arms.items():
        for phase, seed, rate, score in _cells(arm, seeds, reports, direction):
            run = f"{name}-{phase}-{rate:g}-{seed}"
            lost = run in diverged
            final = 0.0 if lost else score
            rows.append(_row(run, name, arm, phase, seed, rate, final, lost, base, records))
            steps = [step for step in STEPS if not lost or step <= STEPS[-1] // 2]
            start = score if base is None else base
            metrics += [(run, s, metric, start + (score - start) * s / STEPS[-1]) for s in steps]
            if records:
                metrics += [(run, s, "train/flops", 1e9 * s) for s in steps if s > 0]
    for row in rows:
        row |= {"direction": direction, "score_metric": metric}
    frame = typed_frame(rows, RECORD_COLUMNS)
    kept = frame[~frame["run_id"].isin(set(missing))]
    planned = frame[["run_id", "arm", "phase", "learning_rate", "seed", "status"]]
    history = pd.DataFrame(metrics, columns=list(METRIC_COLUMNS))
    excluded = pd.DataFrame(columns=list(EXCLUDED_COLUMNS))
    plan = _plan(arms, planned, seeds, reports, kind, records)
    return Sweep(Path("drawn"), plan, kept, history, planned.copy(), excluded)


def _cells(
    arm: Drawn, seeds: int, reports: int, direction: str
) -> list[tuple[str, int, float, float]]:
    better = min if direction == "minimize" else max
    cells = [
        ("search", seed, rate, mean + OFFSETS[seed])
        for rate, mean in zip(arm.rates, arm.scores, strict=True)
        for seed in range(seeds)
    ]
    if arm.report is not None:
        best = arm.rates[arm.scores.index(better(arm.scores))]
        cells += [("report", 100 + i, best, arm.report + OFFSETS[i]) for i in range(reports)]
    return cells


def _row(
    run: str,
    name: str,
    arm: Drawn,
    phase: str,
    seed: int,
    rate: float,
    score: float,
    lost: bool,
    base: float | None,
    records: bool,
) -> dict[str, Any]:
    row = {
        "run_id": run,
        "arm": name,
        "phase": phase,
        "method": "full" if arm.rank is None else "lora",
        "lora_rank": arm.rank,
        "lora_alpha": None if arm.rank is None else 32.0,
        "learning_rate": rate,
        "seed": seed,
        "status": "diverged" if lost else "completed",
        "score_final": score,
        "score_base": base,
        "steps_done": STEPS[-1] // 2 if lost else STEPS[-1],
        "final_window": 1,
        "dtypes": dict.fromkeys(("base", "adapter", "optimizer"), "float32"),
    }
    if records:
        params = 130_000.0 if arm.rank is None else 2_000.0 * arm.rank
        row |= {
            "prompts_per_step": arm.batch,
            "hidden_size": arm.hidden,
            "trainable_params": arm.params or params,
            "train_flops": arm.flops or (3e12 if arm.rank is None else 2e12 + 1e10 * arm.rank),
        }
    return row


def _plan(
    arms: dict[str, Drawn],
    planned: pd.DataFrame,
    seeds: int,
    reports: int,
    kind: str,
    records: bool,
) -> dict[str, Any]:
    return {
        "experiment": {
            "name": "drawn",
            "kind": kind,
            "margin": None,
            "seeds": {
                "search": list(range(seeds)),
                "report": [100 + i for i in range(reports)],
            },
            "factors": ["method"],
        },
        "arms": {
            name: {
                "config": _config(arm),
                "learning_rates": list(arm.rates),
                "model": {"hidden_size": arm.hidden if records else None},
            }
            for name, arm in arms.items()
        },
        "runs": planned.to_dict("records"),
    }


def _config(arm: Drawn) -> dict[str, Any]:
    method: dict[str, Any] = {"name": "full"}
    if arm.rank is not None:
        method = {
            "name": "lora",
            "rank": arm.rank,
            "target_modules": arm.targets,
            "alpha_rule": "constant",
            "lora_alpha": 32.0,
        }
    return {
        "model": {"name": arm.model, "dtype": "float32"},
        "method": method,
        "task": {"name": "arithmetic", "family": "sum3"},
        "objective": {"name": "grpo", "learning_rate": 1e-4, "prompts_per_step": arm.batch},
        "seed": 0,
        "save": "last",
    }


def ranks(*values: int) -> dict[str, Drawn]:
    """FullFT and LoRA at these ranks."""
    return {"full": Drawn(), **{f"lora-r{rank}": Drawn(rank) for rank in values}}


def layer_sets(values: Sequence[int] = (1, 8)) -> dict[str, Drawn]:
    """FullFT, and LoRA on all, attention and MLP layers; MLP has twice attention's parameters."""
    arms = {"full": Drawn()}
    for targets, per_rank, score in (
        ("all", 3_000, 0.50),
        ("attention", 1_000, 0.44),
        ("mlp", 2_000, 0.49),
    ):
        for rank in values:
            params = float(per_rank * rank)
            drawn = Drawn(rank, targets=targets, report=score + 0.01 * rank, params=params)
            arms[f"lora-r{rank}-{targets}"] = drawn
    return arms


def batches(values: Sequence[int] = (4, 16, 64)) -> dict[str, Drawn]:
    """FullFT and LoRA at rank 1 and 8 for each number of prompts in a step."""
    arms = {}
    for i, batch in enumerate(values):
        arms[f"full-b{batch}"] = Drawn(batch=batch, report=0.5 - 0.01 * i)
        for rank in (1, 8):
            drawn = Drawn(rank, batch=batch, report=0.5 - 0.03 * i + 0.001 * rank)
            arms[f"lora-r{rank}-b{batch}"] = drawn
    return arms


def widths(values: Sequence[int] = (32, 64, 128, 256)) -> dict[str, Drawn]:
    """FullFT and LoRA at rank 8 on models of these widths; the ratio grows with the root."""
    arms = {}
    for width in values:
        model = f"lab{width}"
        arms[f"full-{model}"] = Drawn(model=model, hidden=width)
        shift = 10 * (width / 64) ** 0.5
        arms[f"lora-r8-{model}"] = Drawn(8, shift, model=model, hidden=width)
    return arms
