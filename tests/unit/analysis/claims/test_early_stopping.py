"""A search that stopped poor rates early: what is shown of it, and that nothing is estimated."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path

import pytest

from analysis.claims import check_claims
from analysis.estimates.search import search_summary
from analysis.figures import report as figures_report
from analysis.reading.arms import choice
from analysis.reading.load import load
from analysis.reading.sweep import Sweep
from analysis.reporting.methods import methods
from analysis.reporting.report import write_report
from analysis.reporting.tables import NO_REPORT, arm_rows, cell_rows
from analysis.reporting.wording import banner
from tests.doubles import SYNTHETIC_ARMS, run_id, write_synthetic_experiment
from tests.unit.analysis.claims import (
    test_alpha,
    test_batch,
    test_layers,
    test_precision,
    test_width,
)

SETTINGS = {"grace_steps": 20, "keep": 0.5, "window": 3}
LAST_TWO = [
    run_id(name, "search", rate, seed)
    for name, arm in SYNTHETIC_ARMS.items()
    for rate in arm.learning_rates[3:]
    for seed in (0, 1, 2)
]


def stopped(
    path: Path, pruned: Collection[str] = LAST_TWO, report_seeds: tuple[int, ...] = (100, 101, 102)
) -> Sweep:
    """A synthetic experiment with early stopping whose ``pruned`` runs were stopped at step 20."""
    write_synthetic_experiment(path, report_seeds=report_seeds)
    plan = json.loads((path / "plan.json").read_text())
    plan["experiment"]["early_stopping"] = SETTINGS
    (path / "plan.json").write_text(json.dumps(plan))
    for file in path.glob("*/*/record.json"):
        if file.parent.name in pruned:
            record = json.loads(file.read_text())
            record |= {"status": "pruned", "score_final": None, "score_greedy": None}
            file.write_text(json.dumps(record | {"steps_done": 20}))
    return load(path)


def test_every_claim_is_undecided_with_the_reason(tmp_path: Path) -> None:
    found = check_claims(stopped(tmp_path / "q"))
    assert list(dict.fromkeys(v.claim_id for v in found)) == ["C1", "C2", "C3", "C4", "C6", "C9"]
    assert {v.verdict for v in found} == {"undecided"}
    assert {v.flags for v in found} == {("early_stopping",)}
    assert all("curves and ratios are not estimated" in v.reason for v in found)
    assert all(v.estimate is None and v.interval is None for v in found)


@pytest.mark.parametrize("pruned", [LAST_TWO, []])
def test_no_curve_optimum_or_ratio_is_estimated(tmp_path: Path, pruned: list[str]) -> None:
    sweep = stopped(tmp_path / "q", pruned)
    search = search_summary(sweep)
    assert search.curves == {} and search.optima == {} and search.floor is None
    for row in arm_rows(sweep, search):
        assert row.optimum is None and row.ratio is None and row.difference is None


def test_the_selected_rate_and_its_report_score_are_shown(tmp_path: Path) -> None:
    sweep = stopped(tmp_path / "q")
    rows = {row.arm.name: row for row in arm_rows(sweep, search_summary(sweep))}
    chosen = rows["lora-r8"].choice
    assert chosen is not None and chosen.learning_rate == 2e-3 and chosen.final
    score = rows["lora-r8"].score
    assert score is not None and score.point == pytest.approx(0.505) and score.interval


def test_without_report_seeds_there_is_no_score(tmp_path: Path) -> None:
    sweep = stopped(tmp_path / "q", report_seeds=())
    row = arm_rows(sweep, search_summary(sweep))[0]
    assert (row.score, row.score_from) == (None, NO_REPORT)


def test_stopped_runs_are_counted_and_their_scores_are_not(tmp_path: Path) -> None:
    cells = {(row.arm.name, row.learning_rate): row for row in cell_rows(stopped(tmp_path / "q"))}
    last = cells["full", 2e-3]
    assert last.score is None and dict(last.statuses)["pruned"] == 3
    assert cells["full", 2e-4].score is not None


def test_a_rate_stopped_on_one_seed_is_never_the_preferred_one(tmp_path: Path) -> None:
    best = run_id("full", "search", 2e-4, 1)
    sweep = stopped(tmp_path / "q", [*LAST_TWO, best], report_seeds=())
    found = choice(sweep, "full")
    assert found is not None and found.learning_rate == 6e-5


def test_the_page_says_so_and_draws_no_curve(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(figures_report, "figure", lambda *_: b"<svg/>")
    report = write_report(stopped(tmp_path / "q"))
    page = report.index.read_text(encoding="utf-8")
    assert "Early stopping: 18 of 45 search runs were stopped early" in page
    assert "so there is no curve" in page and "no best learning rate is estimated" in page
    assert not list((report.index.parent / "figures").glob("learning_rates.*"))
    assert not any("refuted" in line or "supported" in line for line in report.headlines)


def test_the_methods_say_how_rates_were_stopped(tmp_path: Path) -> None:
    sweep = stopped(tmp_path / "q")
    text = " ".join(methods(sweep, search_summary(sweep)))
    assert "at step 20 and each doubling of it, the share 0.5" in text
    assert "LR*" not in text


def test_other_sweeps_carry_no_such_banner(tmp_path: Path) -> None:
    assert banner(load(write_synthetic_experiment(tmp_path / "q"))) == ""


LARGER: dict[str, Callable[[], Sweep]] = {
    "C7": lambda: test_batch.sweep({8: (0.0, 0.03, 0.06)}, batches=(8, 16, 32)),
    "C8": test_layers.sweep,
    "C20": lambda: test_width.sweep(0.5),
    "C21": lambda: test_alpha.sweep(-1),
    "C22": lambda: test_precision.sweep(3.0),
}


@pytest.mark.parametrize("claim_id", LARGER)
def test_claims_about_more_than_two_arms_are_undecided_too(claim_id: str) -> None:
    sweep = LARGER[claim_id]()
    settings = {**sweep.plan["experiment"], "early_stopping": SETTINGS}
    found = check_claims(replace(sweep, plan={**sweep.plan, "experiment": settings}))
    mine = [v for v in found if v.claim_id == claim_id]
    assert mine
    assert all((v.verdict, v.flags) == ("undecided", ("early_stopping",)) for v in mine)
    assert all(v.missing == "an experiment without early_stopping" for v in mine)
