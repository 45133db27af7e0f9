"""Findings -> the HTML page and the Markdown for a pull request."""

from __future__ import annotations

import base64
import re
import shlex
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from analysis.figures.report import FigureFile
from analysis.reading.sweep import Sweep
from analysis.reporting import page_tables
from analysis.reporting.findings import Findings
from analysis.reporting.numbers import plural, verdict_estimate
from analysis.reporting.provenance import MAX_LINES
from study.records.printable import printable

TEMPLATES = Path(__file__).with_name("templates")
MARKUP = re.compile(r"[\\`*<>|~#]|](?=[(\[:])|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
JOINT_OF_NAME = re.compile(r"(?<=[A-Za-z0-9])[-_](?=[A-Za-z])")
"""Where a long name may go on in the next line; not within a number such as 5e-4."""
MARKDOWN_ROWS = 24
"""Rows of a table in the Markdown; the page and the CSV have the rest."""


def html_page(found: Findings, figures: Sequence[FigureFile]) -> str:
    """The page; it loads nothing."""
    return _environment(escape=True).get_template("report.html.j2").render(_context(found, figures))


def markdown_page(found: Findings, figures: Sequence[FigureFile]) -> str:
    """The short report that a pull request shows; paths are relative to ``report/``."""
    return _environment(escape=False).get_template("report.md.j2").render(_context(found, figures))


def _context(found: Findings, figures: Sequence[FigureFile]) -> dict[str, Any]:
    sweep = found.sweep
    drawn = [figure for figure in figures if figure.svg is not None]
    absent = [figure for figure in figures if figure.svg is None]
    left_out = sweep.excluded[sweep.excluded["kind"] != "failed attempt"]
    return {
        "found": found,
        "sweep": sweep,
        "lower_is_better": sweep.direction == "minimize",
        "drawn": drawn,
        "absent": [figure for figure in absent if not figure.lacks],
        "inapplicable": [figure for figure in absent if figure.lacks],
        "scores": page_tables.scores_table(found),
        "rates": page_tables.rates_table(found),
        "ranks": page_tables.ranks_table(found),
        "tasks": page_tables.tasks_table(found),
        "costs": page_tables.costs_table(found),
        "weights": page_tables.weights_table(found),
        "cells": page_tables.cells_table(found),
        "statuses": page_tables.statuses_table(found),
        "repeats": page_tables.repeats_table(found),
        "excluded": page_tables.excluded_table(left_out),
        "excluded_kinds": list(left_out["kind"].value_counts().items()),
        "attempts": page_tables.attempts_table(sweep.attempts),
        "max_rows": page_tables.MAX_ROWS,
        "max_lines": MAX_LINES,
        "markdown_rows": MARKDOWN_ROWS,
        "command": f"python -m analysis report {_place(sweep)}",
    }


def _place(sweep: Sweep) -> str:
    if sweep.storage is None:
        return shlex.quote(str(sweep.path))
    return f"{shlex.quote(sweep.storage)} --experiment {sweep.name}"


@cache
def _environment(*, escape: bool) -> Environment:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=escape,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "data_uri": _data_uri,
        "cell": _markdown_cell,
        "wrapping": _wrapping,
        "verdict_estimate": verdict_estimate,
        "plural": plural,
    }
    return environment


def _data_uri(svg: bytes) -> str:
    return "data:image/svg+xml;base64," + base64.b64encode(svg).decode("ascii")


def _wrapping(text: object) -> Markup:
    """Escaped text that a browser may break after the hyphens and underscores of its names."""
    return Markup(JOINT_OF_NAME.sub(r"\g<0><wbr>", str(escape(text))))


def _markdown_cell(text: object) -> str:
    """Text that stays in its cell and is no markup; brackets and inner underscores are none."""
    return MARKUP.sub(r"\\\g<0>", printable(" ".join(str(text).split())))
