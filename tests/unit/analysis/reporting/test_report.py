"""The report: what it says, what it escapes, and that nothing makes it fail."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import asdict, replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from analysis.claims import check_claims
from analysis.claims.verdict import Verdict
from analysis.estimates.search import search_summary
from analysis.estimates.stats import Estimate
from analysis.figures import report as figures_report
from analysis.reading.load import load
from analysis.reporting.methods import methods
from analysis.reporting.report import Report, write_report
from analysis.reporting.tables import ALL_DIVERGED, CROSS_FITTED, arm_rows, cell_rows, status_rows
from analysis.reporting.wording import (
    claims_json,
    headlines,
    quantity_text,
    score_text,
    seconds_text,
    summary,
    verdict_estimate,
)
from tests.doubles import (
    BASE,
    LORA_GRID,
    SYNTHETIC_ARMS,
    Defects,
    SyntheticArm,
    run_id,
    write_synthetic_experiment,
)

ALL_RUNS = [
    run_id(name, phase, rate, seed)
    for name, arm in SYNTHETIC_ARMS.items()
    for phase, rates, seeds in (
        ("search", arm.learning_rates, (0, 1, 2)),
        ("report", arm.learning_rates[2:3], (100, 101, 102)),
    )
    for rate in rates
    for seed in seeds
]


class Page(HTMLParser):
    """Tags, visible text, and everything that a browser would fetch."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.loads: list[str] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.loads += [value or "" for name, value in attrs if name in ("src", "href", "srcset")]

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture
def no_pixels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures are drawn by other tests: here they would cost seconds per page."""

    def figure(draw: object, directory: Path, name: str, height: float) -> bytes:
        return b"<svg/>"

    monkeypatch.setattr(figures_report, "figure", figure)


def page(report: Report) -> Page:
    return Page(report.index.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Report:
    path = tmp_path_factory.mktemp("runs") / "quickstart"
    return write_report(load(write_synthetic_experiment(path)))


@pytest.mark.timeout(60)
def test_every_promised_file_is_there(finished: Report) -> None:
    out = finished.index.parent
    figures = ("learning_rates", "ranks", "learning_curves", "best_learning_rates")
    expected = {"index.html", "claims.json", "excluded.csv"}
    expected |= {f"figures/{name}.{suffix}" for name in figures for suffix in ("png", "pdf")}
    tables = ("arms", "learning_rates", "statuses", "runs", "failed_attempts")
    expected |= {f"tables/{name}.csv" for name in tables}

    assert {str(p.relative_to(out)) for p in out.rglob("*") if p.is_file()} == expected


def test_the_page_needs_nothing_else(finished: Report) -> None:
    html = finished.index.read_text(encoding="utf-8")
    shown = Page(html)

    assert len(shown.loads) == 4
    assert all(load.startswith("data:image/svg+xml;base64,") for load in shown.loads)
    assert not {"script", "link", "iframe", "object", "base"} & set(shown.tags)
    assert "http://" not in html and "https://" not in html and "url(" not in html


def test_the_first_line_says_what_it_is_about(finished: Report) -> None:
    body = page(finished).text.split("</style>")[-1]

    assert (
        "Model lab64, task arithmetic (sum3), 3 search seeds and 3 report seeds per arm. "
        "A lab-scale verdict is a verdict about the lab model." in body
    )
    assert "Unfinished" not in body


def test_the_first_screen_answers_the_questions(finished: Report) -> None:
    assert finished.headlines[0].startswith("Model lab64, task arithmetic (sum3), 3 search seeds")
    assert finished.headlines[1:3] == [
        "Does LoRA score the same as full fine-tuning? Supported for lora-r1 and lora-r8.",
        "Does LoRA want about ten times its learning rate? Supported for lora-r1 and lora-r8.",
    ]
    scores, rates = finished.headlines[3:]
    assert "LoRA at rank 8 (lora-r8) scores 0.505 [0.498, 0.512]" in scores
    assert scores.endswith("the untrained model scores 0.200.")
    assert "Learning rates selected: full 2e-4; lora-r1 and lora-r8 2e-3." in rates
    assert re.search(
        r"over FullFT's: lora-r1 \d+\.\d \[[^]]+\], n = 3; lora-r8 .*, n = 3\.$", rates
    )


def test_claims_json_is_the_list_of_verdicts(finished: Report) -> None:
    claims = json.loads((finished.index.parent / "claims.json").read_text())

    assert [claim["claim_id"] for claim in claims] == [v.claim_id for v in finished.verdicts]
    assert {claim["verdict"] for claim in claims} == {"supported"}
    keys = "claim_id statement arms estimate interval confidence verdict reason n_seeds flags"
    assert set(claims[0]) == set(keys.split())


def test_numbers_that_are_not_finite_become_null() -> None:
    verdict = Verdict("C3", "s", ("a",), float("nan"), (1.0, float("inf")), 0.9, "undecided", "", 3)

    (claim,) = json.loads(claims_json([verdict]))
    assert claim["estimate"] is None and claim["interval"] == [1.0, None]


def test_arms_csv_holds_the_numbers_worked_by_hand(finished: Report) -> None:
    table = pd.read_csv(finished.index.parent / "tables" / "arms.csv").set_index("arm")

    assert list(table.index) == ["full", "lora-r1", "lora-r8"]
    assert list(table["score"]) == pytest.approx([0.495, 0.485, 0.505])
    assert list(table["gain"]) == pytest.approx([0.295, 0.285, 0.305])
    assert list(table["greedy"]) == pytest.approx([0.595, 0.585, 0.605])
    # LoRA r1 - full by seed: offsets rotate by one, +0.004, +0.004, -0.008 around -0.01.
    half = 2.91999 * (0.000096 / 2 / 3) ** 0.5
    row = table.loc["lora-r1"]
    assert row["difference_to_full"] == pytest.approx(-0.01)
    assert row["difference_to_full_high"] == pytest.approx(-0.01 + half, abs=1e-6)
    assert list(table["selected_learning_rate"]) == [2e-4, 2e-3, 2e-3]
    assert list(table["trainable_params"]) == [131_712, 2_000, 16_000]
    assert table.loc["lora-r1", "ratio_to_full"] == pytest.approx(10, rel=0.03)
    assert list(table["cost_runs"]) == [18, 18, 18]


def test_the_best_evaluation_is_stored_and_not_shown(finished: Report) -> None:
    runs = pd.read_csv(finished.index.parent / "tables" / "runs.csv")

    assert "score_best" in runs.columns
    assert "0.545" not in page(finished).text  # 0.495 + 0.05, FullFT's best evaluation


def test_the_grid_table_counts_every_status(tmp_path: Path) -> None:
    defects = Defects(
        diverged=[run_id("full", "search", 2e-3, 0)],
        no_signal=[run_id("full", "search", 2e-5, 0)],
        missing=[run_id("full", "search", 2e-5, 1)],
    )
    sweep = load(write_synthetic_experiment(tmp_path / "q", defects=defects))

    first, *_, last = [row for row in cell_rows(sweep) if row.arm.name == "full"]
    counts = {status: n for status, n in first.statuses if n}
    assert counts == {"completed": 1, "no_signal": 1, "missing": 1}
    assert {status: n for status, n in last.statuses if n} == {"completed": 2, "diverged": 1}
    assert last.score is not None and last.score.point == pytest.approx(0.13 / 3)
    chosen = [(r.arm.name, r.learning_rate) for r in cell_rows(sweep) if r.chosen]
    assert chosen == [("full", 2e-4), ("lora-r1", 2e-3), ("lora-r8", 2e-3)]
    totals = {(r.arm.name, r.phase): sum(n for _, n in r.statuses) for r in status_rows(sweep)}
    assert totals["full", "search"] == 15 and totals["lora-r8", "report"] == 3


@pytest.mark.usefixtures("no_pixels")
def test_text_from_models_and_configs_is_escaped(tmp_path: Path) -> None:
    evil = "<script>alert(1)</script>"
    path = write_synthetic_experiment(
        tmp_path / "q", model=evil, family=evil, completion=evil, git_commits=(evil,)
    )
    report = write_report(load(path))
    html = report.index.read_text(encoding="utf-8")

    assert "script" not in Page(html).tags
    assert evil not in html
    assert html.count("&lt;script&gt;alert(1)&lt;/script&gt;") >= 4


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
@pytest.mark.parametrize(
    ("kind", "said"), [("adhoc", "without verdicts"), ("single", "A single run")]
)
def test_other_kinds_are_drawn_without_verdicts(tmp_path: Path, kind: str, said: str) -> None:
    path = write_synthetic_experiment(tmp_path / "q", kind=kind, report_seeds=())
    report = write_report(load(path))

    assert report.verdicts == []
    assert json.loads((report.index.parent / "claims.json").read_text()) == []
    assert said in page(report).text
    assert "There is no report phase" in page(report).text


def one_rate(path: Path) -> Path:
    return write_synthetic_experiment(
        path, arms={"lora-r8": SyntheticArm(8, (2e-3,), (0.5,), 0.5)}, search_seeds=(0,)
    )


CASES: dict[str, tuple[Callable[[Path], Path], str]] = {
    "no record": (
        lambda path: write_synthetic_experiment(path, defects=Defects(missing=ALL_RUNS)),
        "No run of the search phase has a score yet.",
    ),
    "all diverged": (
        lambda path: write_synthetic_experiment(path, defects=Defects(diverged=ALL_RUNS)),
        "every run diverged",
    ),
    "no signal": (
        lambda path: write_synthetic_experiment(path, defects=Defects(no_signal=ALL_RUNS)),
        "a fault of the set-up",
    ),
    "no report phase": (
        lambda path: write_synthetic_experiment(path, report_seeds=()),
        "No run of the report phase has a score yet",
    ),
    "report phase not planned yet": (
        lambda path: write_synthetic_experiment(path, report_joined=False),
        "Unfinished: 45 of 54 runs.",
    ),
    "single arm": (
        lambda path: write_synthetic_experiment(path, arms={"full": SYNTHETIC_ARMS["full"]}),
        "The sweep has no LoRA arm",
    ),
    "one seed": (
        lambda path: write_synthetic_experiment(path, search_seeds=(0,), report_seeds=(100,)),
        "no interval, n = 1",
    ),
    "two seeds": (
        lambda path: write_synthetic_experiment(path, search_seeds=(0, 1), report_seeds=()),
        "best of 2 on the search seeds, optimistic",
    ),
    "one rate": (one_rate, "too few learning rates"),
    "mixed commits": (
        lambda path: write_synthetic_experiment(path, git_commits=("aaa", "bbb")),
        "Commit: MIXED: aaa (27 runs), bbb (27 runs)",
    ),
}


@pytest.mark.usefixtures("no_pixels")
@pytest.mark.parametrize("case", CASES)
def test_what_is_missing_is_explained(tmp_path: Path, case: str) -> None:
    write, said = CASES[case]

    assert said in page(write_report(load(write(tmp_path / "q")))).text


@pytest.mark.timeout(60)
@pytest.mark.parametrize("case", ["all diverged", "one seed", "one rate"])
def test_odd_sweeps_can_be_drawn(tmp_path: Path, case: str) -> None:
    write, _ = CASES[case]
    sweep = load(write(tmp_path / "q"))

    drawn = figures_report.write_figures(sweep, search_summary(sweep), tmp_path / "figures")
    assert [bool(f.svg) != bool(f.missing) for f in drawn] == [True] * 4
    assert drawn[0].svg


def test_a_score_without_report_seeds_is_labelled(tmp_path: Path) -> None:
    sweep = load(write_synthetic_experiment(tmp_path / "q", report_seeds=()))

    row = arm_rows(sweep, search_summary(sweep))[0]
    assert row.score_from == CROSS_FITTED
    assert row.base is not None and row.base.point == pytest.approx(BASE)
    assert row.gain is None and row.difference is None


def test_two_search_seeds_are_the_best_of_two_without_an_interval(tmp_path: Path) -> None:
    path = write_synthetic_experiment(tmp_path / "q", search_seeds=(0, 1), report_seeds=())
    sweep = load(path)

    row = arm_rows(sweep, search_summary(sweep))[0]
    assert row.score_from == "best of 2 on the search seeds, optimistic"
    # The best mean: 0.50 with the offsets -0.01 and 0 of seeds 0 and 1.
    assert row.score is not None
    assert (row.score.point, row.score.interval, row.score.n) == (pytest.approx(0.495), None, 2)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({}, "Learning rates selected: full"),
        ({"report_seeds": ()}, "Learning rates of best mean: full"),
        ({"report_joined": False}, "Learning rates best so far: full"),
    ],
)
def test_rates_are_best_so_far_only_while_runs_are_missing(
    tmp_path: Path, settings: dict[str, Any], said: str
) -> None:
    sweep = load(write_synthetic_experiment(tmp_path / "q", **settings))

    assert summary(arm_rows(sweep, search_summary(sweep)))[-1].startswith(said)


@pytest.mark.usefixtures("no_pixels")
def test_a_stale_selection_leaves_no_difference_in_the_tables(tmp_path: Path) -> None:
    path = write_synthetic_experiment(tmp_path / "q")
    (path / "selection" / "full.json").write_text('{"learning_rate": 6e-5}')
    sweep = load(path)

    full, lora, _ = arm_rows(sweep, search_summary(sweep))
    assert full.score_from == CROSS_FITTED  # its report runs are at another rate than it goes by
    assert (lora.difference, lora.difference_obstacle) == (None, "stale_selection")
    assert lora.ratio is not None  # the search seeds are not concerned
    text = page(write_report(sweep)).text
    assert "not compared: the report runs were made at another learning rate" in text


def test_equal_worst_values_are_no_precision(tmp_path: Path) -> None:
    sweep = load(write_synthetic_experiment(tmp_path / "q", defects=Defects(diverged=ALL_RUNS)))

    row = arm_rows(sweep, search_summary(sweep))[0]
    assert row.score is not None and (row.score.point, row.score.interval) == (0.0, None)
    assert row.score_from == ALL_DIVERGED


@pytest.mark.usefixtures("no_pixels")
def test_a_figure_that_can_no_longer_be_drawn_goes(tmp_path: Path) -> None:
    path = write_synthetic_experiment(tmp_path / "q", report_seeds=())
    stale = path / "report" / "figures" / "ranks.png"
    stale.parent.mkdir(parents=True)
    stale.write_bytes(b"old")

    write_report(load(path))
    assert not stale.exists()


@pytest.mark.usefixtures("no_pixels")
def test_the_page_says_how_to_make_it_again(tmp_path: Path) -> None:
    path = write_synthetic_experiment(tmp_path / "two words" / "q")

    assert f"python -m analysis report '{path}'" in page(write_report(load(path))).text


@pytest.mark.usefixtures("no_pixels")
def test_methods_are_read_off_the_plan(tmp_path: Path) -> None:
    text = page(write_report(load(write_synthetic_experiment(tmp_path / "q")))).text

    for said in (
        "200 AdamW steps of 8 prompts with 8 completions each",
        "full: every parameter is trained; learning rates 2e-5, 6e-5, 2e-4, 6e-4, 2e-3.",
        "lora-r8: LoRA of rank 8, alpha 32 by the rule constant, scaled by alpha / rank, on all "
        "(14 modules)",
        "Search seeds 0, 1, 2 choose",
        "mean over its last 3 evaluations of the accuracy on 512 fixed held-out prompts",
        "adapter float32, base float32, optimizer float32",
        "Runs were added to the plan in 1 launch.",
        "mean score is within f = 0.20 of the rise below the top",
        "Intervals of learning rates add a grid term",
        "torch: 2.13.0",
    ):
        assert said in text, said


@pytest.mark.usefixtures("no_pixels")
def test_a_plan_without_a_hypothesis_is_no_obstacle(tmp_path: Path) -> None:
    path = write_synthetic_experiment(tmp_path / "q")
    plan = json.loads((path / "plan.json").read_text())
    del plan["experiment"]["hypothesis"]
    (path / "plan.json").write_text(json.dumps(plan))

    assert "Hypothesis" not in page(write_report(load(path))).text


def test_methods_say_the_plateau_fraction_that_was_used(tmp_path: Path) -> None:
    # The shallow curve ends 0.06 below its top of 0.50; the rise is 0.32: f = 0.5 * 0.06 / 0.32.
    shallow = SyntheticArm(8, LORA_GRID, (0.40, 0.45, 0.50, 0.50, 0.44), 0.5)
    path = write_synthetic_experiment(tmp_path / "q", arms={"lora-r8": shallow})
    plan = json.loads((path / "plan.json").read_text()) | {"looks": 3}
    (path / "plan.json").write_text(json.dumps(plan))
    sweep = load(path)
    search = search_summary(sweep)
    said = " ".join(methods(sweep, search))

    assert search.fraction == pytest.approx(0.09375)
    assert "within f = 0.09 of the rise" in said and "in 3 launches." in said


def test_flags_and_statuses_on_the_page_are_in_the_glossary(finished: Report) -> None:
    html = finished.index.read_text(encoding="utf-8")
    glossary = re.search(r'<dl class="glossary">(.*?)</dl>', html, re.DOTALL)

    assert glossary is not None
    for code in {"completed", *(flag for v in finished.verdicts for flag in v.flags)}:
        assert f"<dt>{code}</dt>" in glossary[1]


def test_headlines_take_every_rank_from_the_claim_about_every_rank() -> None:
    common = {"statement": "", "estimate": None, "interval": None, "confidence": 0.9}
    rest = {"reason": "", "n_seeds": 3, "flags": ()}
    found = [
        Verdict("C1", arms=("r8", "full"), verdict="supported", **common, **rest),  # type: ignore[arg-type]
        Verdict("C2", arms=("r1", "full"), verdict="refuted", **common, **rest),  # type: ignore[arg-type]
        Verdict("C2", arms=("r8", "full"), verdict="undecided", **common, **rest),  # type: ignore[arg-type]
        Verdict("C2", arms=("r1", "r8", "full"), verdict="refuted", **common, **rest),  # type: ignore[arg-type]
    ]

    assert headlines(found) == [
        "Does LoRA score the same as full fine-tuning? Refuted: r1 scores lower than full "
        "fine-tuning; undecided for r8."
    ]


def test_arms_without_baseline_are_not_compared(tmp_path: Path) -> None:
    path = write_synthetic_experiment(tmp_path / "q")
    plan = json.loads((path / "plan.json").read_text())
    plan["arms"]["lora-r8"]["config"]["objective"]["steps"] = 400
    (path / "plan.json").write_text(json.dumps(plan))

    alone = "not compared: lora-r8 (no full fine-tuning to compare with)."
    lines = headlines(check_claims(load(path)))
    assert [line.split("? ")[1] for line in lines] == [f"Supported for lora-r1; {alone}"] * 2
    plan["arms"]["lora-r1"]["config"]["objective"]["steps"] = 400
    (path / "plan.json").write_text(json.dumps(plan))
    line = headlines(check_claims(load(path)))[0]
    assert "Not compared: lora-r1 and lora-r8 (no full fine-tuning" in line


def test_many_arms_are_summed_up(tmp_path: Path) -> None:
    many = {
        f"lora-r{rank}": replace(SYNTHETIC_ARMS["lora-r8"], rank=rank, report_mean=0.4 + rank / 100)
        for rank in (1, 2, 4, 8, 16)
    }
    arms = {"full": SYNTHETIC_ARMS["full"], **many}
    sweep = load(write_synthetic_experiment(tmp_path / "q", arms=arms))

    scores, rates = summary(arm_rows(sweep, search_summary(sweep)))
    assert scores.startswith("At its own learning rate, the lowest and the highest LoRA arm: ")
    assert "(lora-r1) scores 0.410" in scores and "(lora-r16) scores 0.560" in scores
    assert "lora-r4" not in scores
    assert rates.endswith("full 2e-4; lora-r1, lora-r2, lora-r4, lora-r8 and lora-r16 2e-3.")


def test_numbers_in_words() -> None:
    assert score_text(Estimate(0.4949, 0.4881, 0.5019, 3)) == "0.495 [0.488, 0.502]"
    assert score_text(Estimate(0.4949, None, None, 2)) == "0.495 (no interval, n = 2)"
    assert score_text(Estimate(0.0, None, None, 3)) == "0.000 (no interval, all values equal)"
    assert score_text(None) == "none"
    assert [quantity_text(x) for x in (131712, 1.6e12, None)] == ["131,712", "1.60e12", "-"]
    assert [seconds_text(x) for x in (90, 720, 12240)] == ["90 s", "12 min", "3.4 h"]


@pytest.mark.parametrize(
    ("claim", "said"), [("C1", "+0.010 [-0.002, +0.022]"), ("C3", "0.0 [-0.0, 0.0]")]
)
def test_a_ratio_and_a_difference_are_written_differently(claim: str, said: str) -> None:
    verdict = Verdict(claim, "", ("a", "b"), 0.01, (-0.002, 0.022), 0.9, "supported", "", 3)

    assert verdict_estimate(verdict) == said
    assert asdict(verdict)["estimate"] == 0.01
