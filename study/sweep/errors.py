"""What stops a worker through no fault of the runs it trains."""

from __future__ import annotations

from pathlib import Path


class SweepStoppedError(ValueError):
    """Nothing more can be done for now; what is published stays, the same command resumes."""


class DiskFullError(SweepStoppedError):
    """There is no room for what is to be written."""

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"the disk of {path} is full; free some space, then the same command resumes"
        )


class StorageAwayError(SweepStoppedError):
    """A database did not answer for long."""
