"""Where the runs came from, mixed versions named as such."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from analysis.reading.load import provenances
from analysis.reading.sweep import Sweep
from analysis.reporting.imports import import_lines
from analysis.reporting.numbers import plural
from analysis.reporting.weights import probe_lines

MAX_LINES = 12
"""Facts that the page shows unfolded."""
MACHINE = ("python", "cpu", "gpu")


def provenance_lines(sweep: Sweep) -> list[str]:
    """One line a fact: commit, versions, machine; of an imported sweep its source and resolutions.

    Facts that no run states give no line.
    """
    if sweep.imported:
        return import_lines(sweep)
    files = provenances(sweep)
    packages = [file["packages"] for file in files if isinstance(file.get("packages"), dict)]
    lines = [
        _spread("Commit", sweep.runs["git_commit"]),
        _spread("Uncommitted changes", (file.get("git_dirty", "unknown") for file in files)),
        _spread("Model revision", sweep.runs["model_revision"]),
        _spread("Engine", sweep.runs["engine"]),
        *(_spread(key, (file.get(key) for file in files)) for key in MACHINE),
    ]
    for name in sorted({name for versions in packages for name in versions}):
        lines.append(_spread(name, (versions.get(name) for versions in packages)))
    return [line for line in (*lines, *probe_lines(sweep)) if line]


def _spread(what: str, values: Iterable[object]) -> str:
    counts = Counter("none" if value is None else str(value) for value in values)
    if not set(counts) - {"none"}:
        return ""
    if len(counts) == 1:
        return f"{what}: {next(iter(counts))}"
    shown = ", ".join(f"{value} ({plural(n, 'run')})" for value, n in sorted(counts.items()))
    return f"{what}: MIXED: {shown}"
