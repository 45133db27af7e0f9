"""One experiment -> ``report/``: a page that needs nothing else, figures, tables, verdicts."""

from __future__ import annotations

import base64
import os
import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from pandas import DataFrame

from analysis.claims import check_claims
from analysis.claims.verdict import Verdict
from analysis.estimates.search import SearchSummary, search_summary
from analysis.figures.report import FigureFile, write_figures
from analysis.reading.arms import arms, count_text, rate_text
from analysis.reading.load import provenance, samples
from analysis.reading.sweep import Sweep
from analysis.reporting import wording
from analysis.reporting.glossary import meaning
from analysis.reporting.methods import methods
from analysis.reporting.table_frames import arms_frame, cells_frame, statuses_frame
from analysis.reporting.tables import ArmRow, arm_rows, cell_rows, status_rows

TEMPLATES = Path(__file__).with_name("templates")
SAMPLES_PER_ARM = 2


@dataclass(frozen=True)
class Report:
    """What was written and what it says."""

    index: Path
    headlines: list[str]
    """The page's first lines: its subject, what is unfinished, verdicts, scores and rates."""
    verdicts: list[Verdict]


def write_report(sweep: Sweep) -> Report:
    """Write ``report/`` into the experiment directory, finished or not.

    ``index.html``, ``claims.json``, ``excluded.csv``, ``figures/*.png|pdf``, ``tables/*.csv``.
    """
    out = sweep.path / "report"
    (out / "tables").mkdir(parents=True, exist_ok=True)
    search = search_summary(sweep)
    found = check_claims(sweep, search)
    rows = arm_rows(sweep, search)
    figures = write_figures(sweep, search, out / "figures")
    for name, frame in _tables(sweep, rows).items():
        frame.to_csv(out / "tables" / f"{name}.csv", index=False)
    sweep.excluded.to_csv(out / "excluded.csv", index=False)
    (out / "claims.json").write_text(wording.claims_json(found) + "\n", encoding="utf-8")
    _publish(out / "index.html", _render(sweep, search, rows, found, figures))
    lines = [
        wording.first_line(sweep),
        wording.banner(sweep),
        *wording.headlines(found),
        *wording.summary(rows),
    ]
    return Report(out / "index.html", [line for line in lines if line], found)


def _tables(sweep: Sweep, rows: Sequence[ArmRow]) -> dict[str, DataFrame]:
    return {
        "arms": arms_frame(rows),
        "learning_rates": cells_frame(cell_rows(sweep)),
        "statuses": statuses_frame(status_rows(sweep)),
        "runs": sweep.runs,
        "failed_attempts": sweep.attempts,
    }


def _publish(path: Path, text: str) -> None:
    """Write, then rename: a reader never sees half a page."""
    draft = path.with_suffix(".tmp")
    draft.write_text(text, encoding="utf-8")
    os.replace(draft, path)


def _render(
    sweep: Sweep,
    search: SearchSummary,
    rows: Sequence[ArmRow],
    found: Sequence[Verdict],
    figures: Sequence[FigureFile],
) -> str:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "data_uri": _data_uri,
        "rate": rate_text,
        "score": wording.score_text,
        "difference": wording.difference_text,
        "rate_estimate": wording.rate_estimate_text,
        "difference_cell": wording.difference_cell,
        "ratio_cell": wording.ratio_cell,
        "verdict_estimate": wording.verdict_estimate,
        "meaning": meaning,
        "quantity": wording.quantity_text,
        "seconds": wording.seconds_text,
    }
    cells, statuses = cell_rows(sweep), status_rows(sweep)
    return environment.get_template("report.html.j2").render(
        sweep=sweep,
        first_line=wording.first_line(sweep),
        banner=wording.banner(sweep),
        headlines=wording.headlines(found),
        summary=wording.summary(rows),
        verdicts=found,
        figures=figures,
        rows=rows,
        floor=search.floor,
        cells=cells,
        statuses=statuses,
        excluded=_records(sweep.excluded[sweep.excluded["kind"] != "failed attempt"]),
        attempts=_records(sweep.attempts),
        samples=_samples(sweep),
        methods=methods(sweep, search),
        glossary=_glossary(sweep, rows, found),
        provenance=_provenance(sweep),
        command=f"python -m analysis report {shlex.quote(str(sweep.path))}",
    )


def _data_uri(svg: bytes) -> str:
    return "data:image/svg+xml;base64," + base64.b64encode(svg).decode("ascii")


def _records(frame: DataFrame) -> list[dict[str, Any]]:
    return [{str(key): value for key, value in row.items()} for row in frame.to_dict("records")]


def _samples(sweep: Sweep) -> list[dict[str, Any]]:
    """A few of the last completions of each arm, from a report run where there is one."""
    found = []
    for arm in arms(sweep):
        mine = sweep.runs[sweep.runs["arm"] == arm.name].sort_values(["phase", "seed"])
        if len(mine):
            run_id = str(mine["run_id"].iloc[0])
            lines = samples(sweep, run_id, SAMPLES_PER_ARM)
            found += [{"arm": arm.name, "run_id": run_id, "fields": line} for line in lines]
    return found


def _glossary(
    sweep: Sweep, rows: Sequence[ArmRow], found: Sequence[Verdict]
) -> list[tuple[str, str]]:
    """Every status and flag that the page uses, in words."""
    used = dict.fromkeys(str(status) for status in sweep.planned["status"])
    for row in rows:
        used |= dict.fromkeys(row.optimum.flags if row.optimum else ())
        used |= dict.fromkeys(row.ratio.flags if row.ratio else ())
        used |= dict.fromkeys(flag for flag, _ in row.flags)
        used |= dict.fromkeys(filter(None, (row.difference_obstacle, row.ratio_obstacle)))
    for verdict in found:
        used |= dict.fromkeys(verdict.flags)
    return [(code, meaning(code)) for code in used]


def _provenance(sweep: Sweep) -> list[str]:
    """Where the runs came from, mixed versions named as such."""
    files = [provenance(sweep, str(run_id)) for run_id in sweep.runs["run_id"]]
    packages = [file["packages"] for file in files if isinstance(file.get("packages"), dict)]
    lines = [
        _spread("Commit", sweep.runs["git_commit"]),
        _spread("Uncommitted changes", (file.get("git_dirty", "unknown") for file in files)),
        _spread("Model revision", sweep.runs["model_revision"]),
        _spread("Engine", sweep.runs["engine"]),
        *(_spread(key, (file.get(key) for file in files)) for key in ("python", "cpu", "gpu")),
    ]
    for name in sorted({name for versions in packages for name in versions}):
        lines.append(_spread(name, (versions.get(name) for versions in packages)))
    return [line for line in lines if line]


def _spread(what: str, values: Iterable[object]) -> str:
    counts = Counter("none" if value is None else str(value) for value in values)
    if not set(counts) - {"none"}:
        return ""
    if len(counts) == 1:
        return f"{what}: {next(iter(counts))}"
    shown = ", ".join(f"{value} ({count_text([n], 'run')})" for value, n in sorted(counts.items()))
    return f"{what}: MIXED: {shown}"
