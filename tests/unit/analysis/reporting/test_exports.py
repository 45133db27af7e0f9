"""What the report leaves for other readers: Markdown for a pull request, JSON, the CSV files."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from analysis.reading.load import load
from analysis.reporting import page_tables, pages
from analysis.reporting.report import Report, write_report
from tests.doubles import Defects, write_synthetic_experiment
from tests.unit.analysis.reporting.pages import ALL_RUNS, page

CLAIM_KEYS = (
    "claim_id statement arms estimate interval confidence verdict reason n_seeds flags missing unit"
)


def markdown(report: Report) -> str:
    return (report.index.parent / "report.md").read_text(encoding="utf-8")


def blocks(text: str) -> list[list[str]]:
    """Tables of a Markdown file: runs of lines that begin with a bar."""
    found: list[list[str]] = [[]]
    for line in text.splitlines():
        if line.startswith("|"):
            found[-1].append(line)
        elif found[-1]:
            found.append([])
    return [lines for lines in found if lines]


def test_claims_json_is_the_list_of_verdicts(finished: Report) -> None:
    claims = json.loads((finished.index.parent / "claims.json").read_text())

    assert [claim["claim_id"] for claim in claims] == [v.claim_id for v in finished.verdicts]
    assert all(set(claim) == set(CLAIM_KEYS.split()) for claim in claims)
    assert all(claim["unit"] for claim in claims)


def test_the_markdown_is_short_and_its_tables_are_whole(finished: Report) -> None:
    text = markdown(finished)
    tables = blocks(text)

    assert len(text.splitlines()) < 60
    assert len(tables) == 2
    assert [len(lines) - 2 for lines in tables] == [len(finished.verdicts), 3]
    for lines in tables:
        bars = {len(re.findall(r"(?<!\\)\|", line)) for line in lines}
        assert len(bars) == 1
        assert re.fullmatch(r"\|( -{3}:? \|)+", lines[1])
    assert "\n\n\n" not in text
    for answer in finished.findings.answers:
        assert answer.question in text


def test_the_figures_of_the_markdown_are_where_it_says(finished: Report) -> None:
    links = re.findall(r"\]\((\S+)\)", markdown(finished))

    assert links
    assert all((finished.index.parent / link).is_file() for link in links)


def test_the_markdown_says_how_to_rebuild_it(finished: Report) -> None:
    path = finished.findings.sweep.path

    assert markdown(finished).rstrip().endswith(f"Rebuild: `python -m analysis report {path}`")


@pytest.mark.usefixtures("no_pixels")
def test_bars_and_markup_in_names_break_no_table(tmp_path: Path) -> None:
    path = write_synthetic_experiment(tmp_path / "q", model="a|b*c_d`e_[f](g)<h>")
    text = markdown(write_report(load(path)))

    assert r"a\|b\*c_d\`e\_[f\](g)\<h\>" in text
    assert all(
        len({len(re.findall(r"(?<!\\)\|", line)) for line in lines}) == 1 for lines in blocks(text)
    )


def test_the_summary_has_everything_that_the_page_says(finished: Report) -> None:
    summary = finished.summary
    out = finished.index.parent

    assert summary["subject"] == finished.findings.first_line and summary["banner"] == ""
    assert (summary["runs"], summary["expected_runs"]) == (54, 54)
    assert [found["claim_id"] for found in summary["verdicts"]] == [
        verdict.claim_id for verdict in finished.verdicts
    ]
    arms = {arm["arm"]: arm for arm in summary["arms"]}
    assert arms["lora-r8"]["score"] == pytest.approx(0.505) and arms["lora-r8"]["score_n"] == 3
    assert arms["lora-r8"]["score_low"] < 0.505 < arms["lora-r8"]["score_high"]
    assert {entry["claim_id"] for entry in summary["not_addressed"]} == {
        claim.claim_id for claim, _ in finished.findings.unaddressed
    }
    files = [file for figure in summary["figures"] for file in figure["files"]]
    assert files and all((out / file).is_file() for file in files)
    assert "torch: 2.13.0" in summary["provenance"]
    assert summary["noise_floor"]["sd"] == pytest.approx(0.01)
    assert summary["seeds_needed"] == finished.findings.needs and summary["tasks"] == []


@pytest.mark.usefixtures("no_pixels")
def test_what_was_left_out_is_counted_by_kind(tmp_path: Path) -> None:
    defects = Defects(missing=ALL_RUNS[:2], failed_attempts={ALL_RUNS[0]: 3})
    path = write_synthetic_experiment(tmp_path / "q", defects=defects)

    assert write_report(load(path)).summary["excluded"] == {"no record": 2, "failed attempt": 3}


@pytest.mark.usefixtures("no_pixels")
def test_long_tables_are_folded_cut_and_say_where_the_rest_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_tables, "FOLD", 10)
    monkeypatch.setattr(page_tables, "MAX_ROWS", 12)
    monkeypatch.setattr(pages, "MARKDOWN_ROWS", 2)
    report = write_report(load(write_synthetic_experiment(tmp_path / "q")))
    html = page(report).html

    assert (
        "<summary>Mean score at every learning rate: 15 rows, the first 12 here; all in "
        "<code>tables/learning_rates.csv</code></summary>" in html
    )
    grid = html[html.index('<section id="grid">') : html.index('<section id="runs">')]
    assert grid.count("<tr") == 1 + 12
    assert (
        len((report.index.parent / "tables" / "learning_rates.csv").read_text().splitlines()) == 16
    )
    assert "The first 2 of 3 arms; all in `tables/arms.csv`." in markdown(report)
    assert [len(lines) - 2 for lines in blocks(markdown(report))] == [2, 2]
