"""The page: what it says first, that it needs nothing else, and that anybody can read it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pandas as pd
import pytest

from analysis.reading.load import load
from analysis.reporting.report import Report, write_report
from tests.doubles import Defects, run_id, write_synthetic_experiment
from tests.unit.analysis.reporting.pages import Page, page


@pytest.mark.timeout(60)
def test_every_promised_file_is_there(finished: Report) -> None:
    out = finished.index.parent
    expected = {"index.html", "report.md", "claims.json", "excluded.csv"}
    drawn = [figure.name for figure in finished.figures if figure.svg]
    expected |= {f"figures/{name}.{suffix}" for name in drawn for suffix in ("png", "pdf")}
    tables = ("arms", "learning_rates", "rank_ratios", "repeats", "statuses", "runs")
    expected |= {f"tables/{name}.csv" for name in (*tables, "failed_attempts")}

    assert {"learning_rates", "ranks", "learning_curves", "best_learning_rates"} <= set(drawn)
    assert {str(p.relative_to(out)) for p in out.rglob("*") if p.is_file()} == expected


def test_the_page_needs_nothing_else(finished: Report) -> None:
    shown = page(finished)

    assert len(shown.loads) == sum(1 for figure in finished.figures if figure.svg)
    assert all(load.startswith("data:image/svg+xml;base64,") for load in shown.loads)
    assert not {"script", "link", "iframe", "object", "base"} & {tag for tag, _ in shown.tags}
    assert not re.search(r"https?://|url\(", shown.html)


def test_the_page_can_be_read_without_eyes(finished: Report) -> None:
    shown = page(finished)

    assert shown.attributes("html")[0]["lang"] == "en"
    assert all((image["alt"] or "").strip(". ") for image in shown.attributes("img"))
    assert all(header.get("scope") for header in shown.attributes("th"))
    assert len(shown.attributes("caption")) == len(shown.attributes("table"))
    scrolling = [box for box in shown.attributes("div") if box.get("class") == "wide"]
    assert scrolling and all(box["tabindex"] == "0" and box["aria-label"] for box in scrolling)
    ids = [attributes["id"] for _, attributes in shown.tags if attributes.get("id")]
    targets = [(link["href"] or "").removeprefix("#") for link in shown.attributes("a")]
    assert targets and set(targets) <= set(ids) and len(ids) == len(set(ids))


def contrast(first: str, second: str) -> float:
    """WCAG 2.1 contrast ratio of two colours."""

    def luminance(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((luminance(first), luminance(second)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_the_contrast_rule_is_that_of_wcag() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.005)


def test_every_colour_of_text_stands_out(finished: Report) -> None:
    html = page(finished).html
    named = dict(re.findall(r"--(\w+): (#[0-9a-f]{3,6})", html))
    full = {
        name: c if len(c) == 7 else "#" + "".join(2 * x for x in c[1:]) for name, c in named.items()
    }
    texts = [full[name] for name in ("ink", "soft", "good")]
    texts += re.findall(r"[ {]color: (#[0-9a-f]{6})", html)

    assert len(texts) > 3
    assert all(contrast(colour, "#ffffff") >= 4.5 for colour in texts)
    assert all(contrast("#ffffff", full[name]) >= 4.5 for name in ("good", "bad", "open"))


def test_the_first_line_says_what_it_is_about(finished: Report) -> None:
    body = page(finished).body

    assert (
        "Model lab64, task arithmetic (sum3), 3 search seeds and 3 report seeds per arm. "
        "A lab-scale verdict is a verdict about the lab model." in body
    )
    assert "Unfinished" not in body


def test_the_first_screen_comes_before_everything_else(finished: Report) -> None:
    body = page(finished).body
    first_screen = body.split("Criterion:")[0]

    for answer in finished.findings.answers:
        for part in (answer.question, answer.text, answer.rests_on):
            assert part in first_screen
    figure = next(figure for figure in finished.figures if figure.svg)
    assert page(finished).html.index(f"figure-{figure.name}") < page(finished).html.index(
        '<section id="verdicts">'
    )


def test_verdicts_stand_under_their_claim_with_its_criterion(finished: Report) -> None:
    html = page(finished).html
    table = html[html.index('<section id="verdicts">') : html.index('<section id="figures">')]

    for claim in finished.findings.judged.values():
        assert table.count(f"<strong>{claim.claim_id} {claim.title}.") == 1
        assert "Criterion: " in table
    assert table.count('<span class="verdict ') == len(finished.verdicts)


def test_claims_that_the_sweep_says_nothing_about_are_one_list(finished: Report) -> None:
    body = page(finished).body
    listed = body.split("Not addressed by this sweep")[1].split("Figures")[0]

    assert finished.findings.unaddressed
    for claim, lack in finished.findings.unaddressed:
        assert f"{claim.claim_id} {claim.title} ({lack})" in " ".join(listed.split())
    assert not {claim.claim_id for claim, _ in finished.findings.unaddressed} & {
        verdict.claim_id for verdict in finished.verdicts
    }


@pytest.mark.usefixtures("no_pixels")
def test_text_from_models_and_configs_is_escaped(tmp_path: Path) -> None:
    evil = "<script>alert(1)</script>"
    path = write_synthetic_experiment(
        tmp_path / "q", model=evil, family=evil, completion=evil, git_commits=(evil,)
    )
    report = write_report(load(path))
    html = report.index.read_text(encoding="utf-8")

    assert "script" not in {tag for tag, _ in Page(html).tags}
    assert evil not in html
    assert html.count("&lt;script&gt;alert(1)&lt;/script&gt;") >= 4
    assert evil not in (report.index.parent / "report.md").read_text(encoding="utf-8")


@pytest.mark.usefixtures("no_pixels")
def test_an_unfinished_sweep_gets_a_banner_and_no_verdict(tmp_path: Path) -> None:
    gone = run_id("lora-r8", "search", 2e-3, 1)
    defects = Defects(missing=[gone], failed_attempts={gone: 3})
    report = write_report(load(write_synthetic_experiment(tmp_path / "q", defects=defects)))
    text = page(report).text

    assert "Unfinished: 53 of 54 runs (1 without a result after failed attempts)." in text
    assert {verdict.verdict for verdict in report.verdicts} == {"undecided"}
    assert text.count("not compared: runs are missing, so nothing is decided") == 2 * 2 + 1
    assert report.headlines[-1].endswith(
        "FullFT's: lora-r1 and lora-r8 not compared: runs are missing, so nothing is decided."
    )
    table = pd.read_csv(report.index.parent / "tables" / "arms.csv").set_index("arm")
    assert table[["difference_to_full", "ratio_to_full", "ratio_to_full_low"]].isna().all().all()
    assert table.loc["lora-r8", "ratio_not_compared"] == "unfinished"
    assert "planned, no record after 3 failed attempts; the last one: oom" in text
    excluded = pd.read_csv(report.index.parent / "excluded.csv")
    assert list(excluded["kind"]) == ["no record"] + ["failed attempt"] * 3


@pytest.mark.usefixtures("no_pixels")
def test_a_figure_that_can_no_longer_be_drawn_goes(tmp_path: Path) -> None:
    path = write_synthetic_experiment(tmp_path / "q", search_seeds=(0,), report_seeds=())
    (path / "plan.json").write_text(
        json.dumps(json.loads((path / "plan.json").read_text()) | {"runs": []})
    )
    stale = path / "report" / "figures" / "learning_rates.png"
    stale.parent.mkdir(parents=True)
    stale.write_bytes(b"old")

    write_report(load(path))
    assert not stale.exists()


def test_a_report_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    path = write_synthetic_experiment(tmp_path / "q", search_seeds=(0,), report_seeds=())
    (path / "report").write_text("a file")

    with pytest.raises(ValueError, match=r"cannot write to .*report"):
        write_report(load(path))


@pytest.mark.usefixtures("no_pixels")
def test_the_page_says_how_to_make_it_again(tmp_path: Path) -> None:
    path = write_synthetic_experiment(tmp_path / "two words" / "q")

    assert f"python -m analysis report '{path}'" in page(write_report(load(path))).text
