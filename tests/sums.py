"""What a session of tests adds up, over all processes that pytest-xdist runs it in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any


@dataclass
class Tally:
    """What a session of tests inflicted, and what it has counted."""

    injections: int = 0
    launches: int = 0
    runs: int = 0
    seconds: float = 0.0
    running: int = 0
    """Claims of the dead, seen before anything ended them."""
    untold: int = 0
    """Records that no trial held yet, seen before anything told them."""
    lost: int = 0
    """Runs without a record, or whose record no trial holds, when their sweep was over."""
    doubled: int = 0
    """Runs whose record two trials hold, at any moment."""
    differing: int = 0
    """Runs with another record, log or evaluation than in a sweep left in peace."""

    def line(self) -> str:
        """For the end of the output."""
        return (
            f"faults: {self.injections} injections, {self.launches} launches, {self.runs} runs; "
            f"mended: {self.running} claims of the dead, {self.untold} records without a trial; "
            f"{self.lost} lost, {self.doubled} doubled, {self.differing} with other values; "
            f"{self.seconds:.0f} s"
        )


TALLY = Tally()

DEVIATIONS: dict[str, float] = {}
"""Quantity -> largest relative deviation of the packed engine from TRL."""


def counted() -> dict[str, Any]:
    """What this process has counted, in plain values."""
    return {"tally": asdict(TALLY), "deviations": DEVIATIONS}


def add(other: Mapping[str, Any]) -> None:
    """Add what another process has counted."""
    for field in fields(TALLY):
        mine, its = getattr(TALLY, field.name), other["tally"][field.name]
        setattr(TALLY, field.name, mine + its)
    for name, deviation in other["deviations"].items():
        note_deviation(name, deviation)


def note_deviation(name: str, deviation: float) -> None:
    """Remember a deviation if it is the largest of its quantity."""
    DEVIATIONS[name] = max(DEVIATIONS.get(name, 0.0), deviation)
