"""What was measured of trained models beside their scores: ``probes.json`` of every run.

The files are :mod:`study.probes`'s, which documents them. A sweep that was rebuilt from a storage
has none: they lie in the runs' directories.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from analysis.reading.files import read_json

SCHEMA_VERSION = 2


def read_probes(path: Path | None, places: Iterable[tuple[str, str]]) -> dict[str, dict[str, Any]]:
    """Read the probes of runs.

    Args:
        path: The experiment directory; None: there is none.
        places: Arm and run id of the runs.

    Returns:
        The content of each file of this schema version by run id; other runs are left out.
    """
    if path is None:
        return {}
    found = {}
    for arm, run_id in places:
        content, _ = read_json(f"{path}/{arm}/{run_id}/probes.json")
        if content is not None and content.get("schema_version") == SCHEMA_VERSION:
            found[run_id] = content
    return found


def at(content: Mapping[str, Any] | None, *keys: str) -> float | None:
    """A number in a file, ``at(content, "weights", "trained", "bf16")``; None where there is none.

    Objects may lack any key: a part was not asked for, or has the reason why it was not measured.
    """
    value: Any = content
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number else None


def unmeasured(content: Mapping[str, Any], part: str) -> str:
    """Why a part that was asked for was not measured; empty if it was, or was not asked for."""
    found = content.get(part)
    if not isinstance(found, Mapping):
        return ""
    if "failed" in found:
        return f"failed: {found['failed']}"
    return str(found.get("left_out", ""))
