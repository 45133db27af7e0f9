"""What ``python -m study.adapters eval --out`` measured, ready to be drawn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from analysis.reading.files import read_json


@dataclass(frozen=True, kw_only=True)
class AdapterCell:
    """One adapter, or sum of adapters, on one task."""

    accuracy: float
    """Sampled as in training."""
    low: float
    high: float
    """Ends of its interval over prompts."""
    greedy: float


@dataclass(frozen=True, kw_only=True)
class AdapterMatrix:
    """Adapters by tasks on one base."""

    model: str
    prompts: int
    level: float
    adapters: list[str]
    tasks: list[str]
    cells: dict[tuple[str, str], AdapterCell]


def read_adapters(path: Path) -> AdapterMatrix:
    """Read the JSON file of a matrix.

    Raises:
        ValueError: if the file is not there, is no JSON, or was not written by the command.
    """
    data, problem = read_json(path)
    if data is None:
        raise ValueError(f"{path} {problem}")
    try:
        return _matrix(data)
    except KeyError as error:
        why = f"it lacks {error}"
        raise ValueError(f"{path} was not written by python -m study.adapters: {why}") from error
    except (TypeError, AttributeError) as error:
        raise ValueError(f"{path} was not written by python -m study.adapters: {error}") from error


def _matrix(data: Mapping[str, Any]) -> AdapterMatrix:
    cells = {
        (str(cell["adapter"]), str(cell["task"])): AdapterCell(
            accuracy=float(cell["accuracy"]),
            low=float(cell["low"]),
            high=float(cell["high"]),
            greedy=float(cell["greedy_accuracy"]),
        )
        for cell in data["cells"]
    }
    adapters, tasks = list(data["rows"]), list(data["tasks"])
    missing = [(row, task) for row in adapters for task in tasks if (row, task) not in cells]
    if missing:
        raise KeyError(f"the cell of {missing[0][0]} on {missing[0][1]}")
    return AdapterMatrix(
        model=str(data["model"]),
        prompts=int(data["prompts"]),
        level=float(data["level"]),
        adapters=adapters,
        tasks=tasks,
        cells=cells,
    )
