"""What a worker and its child say to each other over their pipe."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from study.train.engine import RunSpec


@dataclass(frozen=True, kw_only=True)
class Assignment:
    """One run, and what its record says beside the measurements."""

    spec: RunSpec
    experiment: str
    arm: str
    phase: str
    factors: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class PackAssignment:
    """What a child is given at its start."""

    runs: list[Assignment]
    engine_module: str
    """Module with the engine's ``train``."""
    stops_early: bool
    """Whether the experiment has early stopping on; if not, the child need not ask."""
    origin: dict[str, Any]
    """Provenance of the worker's process, which the child shares but for the GPU."""


@dataclass(frozen=True, kw_only=True)
class Progress:
    """How far a run is."""

    run_id: str
    step: int
    accuracy: float | None
    """Held-out accuracy at that step, if the news is an evaluation."""


@dataclass(frozen=True, kw_only=True)
class News:
    """A sign of life of the child; empty where no run got further."""

    progress: list[Progress]


@dataclass(frozen=True, kw_only=True)
class Ended:
    """A run's ``result.json`` is in its attempt's directory."""

    run_id: str


@dataclass(frozen=True, kw_only=True)
class Failed:
    """A run's ``error.json`` is in its attempt's directory; the child goes on with the others."""

    run_id: str


@dataclass(frozen=True, kw_only=True)
class WantsRuns:
    """The child has room; it waits for a list of as many :class:`Assignment` as fit, or none."""


@dataclass(frozen=True, kw_only=True)
class AsksToStop:
    """Does early stopping end the run? The child waits for the reason or None."""

    run_id: str
    step: int


Message = News | Ended | Failed | WantsRuns | AsksToStop
