"""What ``python -m study.bench --json`` measured, ready to be drawn."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from analysis.reading.files import is_number, read_json


@dataclass(frozen=True)
class Span:
    """A median over the rounds of a measurement, the smallest and the largest value."""

    median: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class StepCase:
    """A paired measurement of both engines."""

    label: str
    """Model and size of a step."""
    method: str
    reward: str
    """``task`` or ``parity``."""
    ratio: Span
    """How many times longer a run-step takes under TRL."""
    floor_share: Span
    """Arithmetic floor over the packed engine's run-step."""


@dataclass(frozen=True, kw_only=True)
class ScalingCurve:
    """A run-step by the size of the pack."""

    rows: int
    """Completions of a run's step."""
    lanes: list[int]
    step_s: list[Span]
    """Seconds of a run-step, by ``lanes``."""
    trl_step_s: float | None
    """Seconds of a run-step of the same runs under TRL; None if that was not measured."""


@dataclass(frozen=True, kw_only=True)
class BenchFigures:
    """Everything that is drawn of one file; a part that was not measured is empty."""

    subject: str
    """Machine, and a warning if it was busy."""
    steps: list[StepCase]
    scaling: list[ScalingCurve]


def read_bench(path: Path) -> BenchFigures:
    """Read the JSON file of a measurement.

    Raises:
        ValueError: if the file is not there, is no JSON, or was not written by the bench.
    """
    data, problem = read_json(path)
    if data is None:
        raise ValueError(f"{path} {problem}")
    try:
        return bench_figures(data)
    except KeyError as error:
        why = f"it lacks {error}"
        raise ValueError(f"{path} was not written by python -m study.bench: {why}") from error
    except (TypeError, AttributeError) as error:
        raise ValueError(f"{path} was not written by python -m study.bench: {error}") from error


def bench_figures(data: Mapping[str, Any]) -> BenchFigures:
    """What is drawn of a measurement.

    Raises:
        KeyError, TypeError: if it lacks something.
    """
    machine = data["machine"]
    subject = f"{machine['gpu'] or machine['cpu']}, one thread"
    if not machine["quiet"]:
        subject += "; the machine was busy: quote no figure"
    steps = data.get("steps", [])
    return BenchFigures(
        subject=subject,
        steps=[_step_case(case) for case in steps],
        scaling=_curves(data.get("scaling", []), steps),
    )


def _step_case(case: Mapping[str, Any]) -> StepCase:
    return StepCase(
        label=f"{case['model']}, {case['rows']} rows",
        method={"lora": "LoRA", "full": "FullFT"}[case["method"]],
        reward=case["reward"],
        ratio=_span(case["ratio"]),
        floor_share=_span(case["floor_share"]),
    )


def _curves(
    measured: Sequence[Mapping[str, Any]], steps: Sequence[Mapping[str, Any]]
) -> list[ScalingCurve]:
    """One curve for each size of a step."""
    curves = []
    for rows in sorted({entry["rows"] for entry in measured}):
        points = sorted((e for e in measured if e["rows"] == rows), key=lambda e: int(e["lanes"]))
        curve = ScalingCurve(
            rows=rows,
            lanes=[point["lanes"] for point in points],
            step_s=[_span(point["step_s"]) for point in points],
            trl_step_s=_trl_step(points[0], steps),
        )
        curves.append(curve)
    return curves


def _trl_step(point: Mapping[str, Any], steps: Sequence[Mapping[str, Any]]) -> float | None:
    """TRL's median run-step of the same runs."""
    same = ("model", "rows", "method", "reward")
    for case in steps:
        if all(case[key] == point[key] for key in same):
            return statistics.median(float(one["trl"]["step_s"]) for one in case["rounds"])
    return None


def _span(value: Mapping[str, Any]) -> Span:
    numbers = [value["median"], value["low"], value["high"]]
    if not all(is_number(number) for number in numbers):
        raise TypeError(f"a spread is made of numbers, got {numbers}")
    return Span(*map(float, numbers))
