"""What models, records and configs say is shown as text: it runs, steers and computes nothing."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pandas as pd
import pytest

from analysis.__main__ import main
from analysis.estimates.search import search_summary
from analysis.figures.report import write_figures
from analysis.reading.csv_file import write_csv
from analysis.reading.load import load
from analysis.reporting.report import write_report
from study.records.printable import printable
from tests.doubles import Defects, run_id, write_synthetic_experiment
from tests.storages import store_experiment
from tests.unit.analysis.reporting.pages import Page

pytestmark = pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
TEXTS = [
    "<script>alert(1)</script>",
    "</style></title><img src=x onerror=alert(1)>",
    "\" onmouseover=\"alert(1)' autofocus onfocus='alert(1)",
    "{{ 7*7 }}{% raw %}${7*7}",
    "![x](javascript:alert(1)) [y](https://evil.example) <b>*z*</b> | a | b |",
    "\x1b[2J\x1b]0;title\x07\x1b[31mred\x9b31m",
    "[red]markup[/red] [link=https://evil.example]here[/link]",
    "=cmd|' /C calc'!A0",
    "+1+cmd",
    "@SUM(1)",
    "-2+3",
    "\ta",
    "$x^{2}$ \\frac{1}{2} $",
    "\u202eright to left\u2066",
    "line one\nline two\r\nFAKE VERDICT: supported",
    "a\0b",
    "é" * 5000,
]
MARK = "mark7f"
"""Stands in every text, so that it is found again."""


def evil_experiment(directory: Path, text: str) -> Path:
    """Every text of an experiment that is not a name says ``text``."""
    gone, ended = run_id("full", "search", 2e-5, 0), run_id("full", "search", 2e-3, 1)
    defects = Defects(missing=[gone], diverged=[ended], failed_attempts={gone: 1})
    path = write_synthetic_experiment(
        directory / "ex", model=text, family=text, completion=text, git_commits=(text,),
        defects=defects,
    )  # fmt: skip
    plan = json.loads((path / "plan.json").read_text())
    for key in ("hypothesis", "decision_metric", "criterion"):
        plan["experiment"][key] = text
    (path / "plan.json").write_text(json.dumps(plan))
    for file in path.glob("*/*/record.json"):
        record = json.loads(file.read_text())
        record |= {"status_reason": text, "flags": [text], "engine": text, "task": text}
        file.write_text(json.dumps(record))
    attempts = path / "full" / gone / "attempts.jsonl"
    line = json.loads(attempts.read_text())
    attempts.write_text(json.dumps({**line, "status": text, "reason": text}) + "\n")
    return path


def texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from (text for pair in value.items() for part in pair for text in texts(part))
    elif isinstance(value, list):
        yield from (text for part in value for text in texts(part))


@pytest.fixture(scope="module")
def honest_tags(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """The tags and attributes of a page whose texts hold nothing special."""
    path = evil_experiment(tmp_path_factory.mktemp("honest"), f"plain {MARK}")
    return shape(write_report(load(path)).index)


def shape(page: Path) -> set[str]:
    tags = Page(page.read_text(encoding="utf-8")).tags
    return {f"{tag} {sorted(attributes)}" for tag, attributes in tags}


@pytest.mark.usefixtures("no_pixels")
@pytest.mark.parametrize("text", TEXTS)
def test_a_report_shows_any_text_as_text(
    tmp_path: Path, text: str, honest_tags: set[str], capsys: pytest.CaptureFixture[str]
) -> None:
    path = evil_experiment(tmp_path, f"{text}{MARK}")
    assert main(["report", str(path)]) == main(["claims", str(path)]) == 0
    out = path / "report"

    assert shape(out / "index.html") <= honest_tags
    page = Page((out / "index.html").read_text(encoding="utf-8"))
    assert MARK in page.text and not [load for load in page.loads if not load.startswith("data:")]
    assert_plain_terminal(capsys.readouterr().out)
    assert_plain_terminal((out / "report.md").read_text(encoding="utf-8"))
    assert_plain_markdown((out / "report.md").read_text(encoding="utf-8"))
    for table in (*(out / "tables").glob("*.csv"), out / "excluded.csv"):
        assert_no_formula(table)
    assert list(texts(json.loads((out / "claims.json").read_text())))


def assert_plain_terminal(said: str) -> None:
    steering = {c for c in said if not c.isprintable() and c not in "\n\t"}
    assert not steering, steering


def assert_plain_markdown(said: str) -> None:
    for wrong in ("<script", "<img", "<b>", "](javascript:", "](https://evil"):
        assert wrong not in said.replace("\\<", "").replace("\\](", "]\\(").replace(r"\]", ""), (
            wrong
        )
    assert not [line for line in said.splitlines() if line.startswith("FAKE VERDICT")]


def assert_no_formula(table: Path) -> None:
    with table.open(newline="", encoding="utf-8") as file:
        for row in csv.reader(file):
            for cell in row:
                if cell.startswith(("=", "+", "-", "@", "\t", "\r")):
                    float(cell)  # a number may be negative


@pytest.mark.usefixtures("no_pixels")
def test_a_storage_is_shown_as_its_directory_is(tmp_path: Path, honest_tags: set[str]) -> None:
    path = evil_experiment(tmp_path, f"{''.join(TEXTS[:10])}{MARK}")
    url = store_experiment(path, f"journal:{tmp_path}/storage")
    report = write_report(load(url), tmp_path / "out")
    assert shape(report.index) <= honest_tags
    assert_plain_terminal((tmp_path / "out" / "report.md").read_text(encoding="utf-8"))


@pytest.mark.usefixtures("no_pixels")
@pytest.mark.parametrize("text", TEXTS[:-2])
def test_an_imported_sweep_may_be_called_anything(
    tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Arms, models, tasks and run ids of others are no names of ours."""
    rows = pd.DataFrame(
        {
            "run_id": [f"{text}{i}" for i in range(12)],
            "arm": [f"{text} full"] * 6 + [f"{text} lora"] * 6,
            "method": ["full"] * 6 + ["lora"] * 6,
            "lora_rank": [None] * 6 + [8] * 6,
            "learning_rate": [1e-5, 1e-4, 1e-3] * 4,
            "seed": [0, 0, 0, 1, 1, 1] * 2,
            "score_final": [0.1, 0.5, 0.2] * 4,
            "model": text,
            "task": text,
            "status_reason": text,
        }
    )
    rows.to_csv(tmp_path / "s.csv", index=False)
    out = tmp_path / "theirs"
    assert main(["import", str(tmp_path / "s.csv"), "--out", str(out)]) == 0
    assert main(["report", str(out)]) == main(["claims", str(out)]) == 0
    assert main(["recommend", str(out), "--method", "lora", "--rank", "8"]) == 0
    assert main(["export", str(out), "--format", "csv"]) == 0
    said = capsys.readouterr()
    assert_plain_terminal(said.out + said.err)
    page = Page((out / "report" / "index.html").read_text(encoding="utf-8"))
    assert not {"script", "b"} & {tag for tag, _ in page.tags}
    assert not any(name.startswith("on") for _, attributes in page.tags for name in attributes)
    assert not [load for load in page.loads if not load.startswith("data:")]
    for table in (*(out / "report" / "tables").glob("*.csv"), *(out / "export").glob("*.csv")):
        assert_no_formula(table)


@pytest.mark.timeout(120)
@pytest.mark.parametrize("text", ["$x^{2}$ \\bad{$ \x1b[31m\0\x9b", "--></svg><script>"])
def test_figures_draw_any_text(tmp_path: Path, text: str) -> None:
    """No formula is set, and the page's SVG stays one document without a script."""
    sweep = load(evil_experiment(tmp_path, f"{text}{MARK}"))
    drawn = [f for f in write_figures(sweep, search_summary(sweep), tmp_path / "out") if f.svg]
    assert len(drawn) > 3
    for figure in drawn:
        tags = {node.tag.rpartition("}")[2] for node in ElementTree.fromstring(figure.svg).iter()}
        assert "script" not in tags


def test_comparing_prints_texts_and_no_escapes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    evil = evil_experiment(tmp_path, f"\x1b[2J[red]x[/red]{MARK}")
    other = write_synthetic_experiment(tmp_path / "other", model="lab128")
    assert main(["compare", str(evil), str(other)]) == 0
    said = capsys.readouterr().out
    assert_plain_terminal(said)
    assert "\\x1b[2J[red]x[/red]" in said


def test_errors_spell_escapes_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["claims", str(tmp_path / "\x1b[2Jno")]) == 2
    assert "\\x1b[2Jno" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain ü €\tand\nlines", "plain ü €\tand\nlines"),
        ("\x1b[31m", "\\x1b[31m"),
        ("\x9b31m", "\\x9b31m"),
        ("a\rb", "a\\rb"),
        ("\u202e", "\\u202e"),
        ("\x00", "\\x00"),
    ],
)
def test_printable_text(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_numbers_stay_numbers_in_a_csv_file(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {"=x": [-1.5, 2.0], "text": ["=1+1", None], "kind": pd.Categorical(["-a", "b"])}
    )
    write_csv(frame, tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text() == "'=x,text,kind\n-1.5,'=1+1,'-a\n2.0,,b\n"
