"""The frames of a sweep as files for other programs."""

from __future__ import annotations

import os
from pathlib import Path

from analysis.reading.csv_file import write_csv
from analysis.reading.frames import to_plain
from analysis.reading.sweep import Sweep

FORMATS = ("parquet", "csv")


def export(sweep: Sweep, directory: Path, form: str) -> list[Path]:
    """Write ``runs``, ``metrics`` and ``excluded``, over those of an earlier export.

    Columns of runs that hold lists or objects become JSON text; in CSV, text that a spreadsheet
    would take for a formula gets an apostrophe.

    Args:
        sweep: What to write.
        directory: Where; it is made if it is not there.
        form: One of :data:`FORMATS`.

    Returns:
        The files.

    Raises:
        ValueError: if the directory cannot be written.
    """
    frames = {"runs": to_plain(sweep.runs), "metrics": sweep.metrics, "excluded": sweep.excluded}
    written = []
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name, frame in frames.items():
            draft, path = directory / f".{name}.{os.getpid()}", directory / f"{name}.{form}"
            if form == "csv":
                write_csv(frame, draft)
            else:
                frame.to_parquet(draft, index=False)
            os.replace(draft, path)
            written.append(path)
    except OSError as error:
        raise ValueError(f"{directory} cannot be written: {error.strerror or error}") from error
    return written
