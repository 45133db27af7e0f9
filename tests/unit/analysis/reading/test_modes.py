"""Experiments of other search modes: what they select, and what they never estimate."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from analysis.claims import check_claims
from analysis.estimates.search import search_summary
from analysis.reading.arms import choice
from analysis.reading.load import load
from analysis.reporting.report import write_report
from tests.doubles import SYNTHETIC_ARMS, write_synthetic_experiment

REFINED = 3e-4
"""Between the third and the fourth rate of the synthetic grid of ``full``."""


def changed(directory: Path, plan: dict[str, Any] | None = None, **experiment: Any) -> Path:
    """A synthetic experiment whose plan says something else."""
    content = json.loads((directory / "plan.json").read_text())
    content["experiment"] |= experiment
    (directory / "plan.json").write_text(json.dumps(content | (plan or {})))
    return directory


def refined(directory: Path, score: float = 0.9) -> Path:
    """``full`` has been refined by one rate, at which every search seed scored ``score``."""
    plan = json.loads((directory / "plan.json").read_text())
    like = [r for r in plan["runs"] if r["arm"] == "full" and r["phase"] == "search"][:3]
    for run in like:
        new = {**run, "run_id": f"refined-{run['seed']}", "learning_rate": REFINED}
        place = directory / "full" / run["run_id"]
        record = json.loads((place / "record.json").read_text())
        (directory / "full" / new["run_id"]).mkdir()
        record |= {**new, "score_final": score}
        (directory / "full" / new["run_id"] / "record.json").write_text(json.dumps(record))
        plan["runs"].append(new)
    plan["refined"] = {"full": [REFINED]}
    (directory / "plan.json").write_text(json.dumps(plan))
    return changed(directory, refine={"points": 1})


def test_refined_rates_compete_and_enter_no_curve(tmp_path: Path) -> None:
    plain = load(write_synthetic_experiment(tmp_path / "a"))
    directory = refined(write_synthetic_experiment(tmp_path / "b"))
    (directory / "selection" / "full.json").unlink()
    sweep = load(directory)

    assert sweep.search_means["full"][REFINED] == pytest.approx(0.9)
    found = choice(sweep, "full")
    assert found is not None and found.learning_rate == REFINED and found.edge is None
    before, after = search_summary(plain), search_summary(sweep)
    assert after.curves["full"].learning_rates == SYNTHETIC_ARMS["full"].learning_rates
    assert after.optima == before.optima and after.floor == before.floor
    assert len(sweep.runs) == 57 and len(sweep.grid_runs) == 54


def test_refined_rates_are_expected_until_they_are_planned(tmp_path: Path) -> None:
    """One point at three search seeds for each of the arms that have none yet."""
    directory = changed(write_synthetic_experiment(tmp_path / "a"), refine={"points": 1})
    assert load(directory).expected == 54 + 3 * 3 and not load(directory).complete
    assert load(refined(write_synthetic_experiment(tmp_path / "b"))).expected == 57 + 2 * 3


def test_a_joint_search_decides_and_estimates_nothing(tmp_path: Path) -> None:
    best = {"choices": {}, "low": 1e-5, "high": 1e-1, "trials": 15, "finalists": 3}
    sweep = load(changed(write_synthetic_experiment(tmp_path / "a"), best=best))

    assert sweep.selects_only and not sweep.stops_early
    assert sweep.complete and sweep.expected == 15 * 3 + 3 * 3 == 54
    assert search_summary(sweep).curves == {}
    verdicts = check_claims(sweep)
    assert verdicts and {v.verdict for v in verdicts} == {"undecided"}
    assert all("joint_search" in v.flags for v in verdicts)
    assert "an experiment with a grid" in {v.missing for v in verdicts}


def test_an_ablation_decides_nothing_and_has_its_curves(tmp_path: Path) -> None:
    ablate = {"source": "full", "target": "lora-r8", "path": False}
    sweep = load(changed(write_synthetic_experiment(tmp_path / "a"), ablate=ablate))

    verdicts = check_claims(sweep)
    assert verdicts and {v.verdict for v in verdicts} == {"undecided"}
    assert all("ablation" in v.flags for v in verdicts)
    assert set(search_summary(sweep).curves) == set(SYNTHETIC_ARMS)


@pytest.mark.timeout(120)
def test_a_joint_search_before_its_first_trial_can_be_reported(tmp_path: Path) -> None:
    """Arms join the plan with the trials that try them."""
    best = {"choices": {}, "low": 1e-5, "high": 1e-1, "trials": 15, "finalists": 3}
    path = write_synthetic_experiment(tmp_path / "a", report_seeds=())
    nothing = {"arms": {}, "runs": [], "reserve": {}}
    sweep = load(changed(path, nothing, best=best, seeds={"search": [0], "report": [100]}))
    assert (len(sweep.runs), sweep.expected) == (0, 18)
    page = write_report(sweep).index.read_text()
    assert "Unfinished: 0 of 18 runs" in page and "A joint search" in page


def test_a_report_says_how_often_its_experiment_grew(tmp_path: Path) -> None:
    """Criteria hold for one look; others read in between and went on because of what they saw."""
    once = load(write_synthetic_experiment(tmp_path / "a"))
    thrice = load(changed(write_synthetic_experiment(tmp_path / "b"), {"looks": 3}))
    said = "Grown in 3 launches: intervals and verdicts hold for a plan that was made once."
    assert said in write_report(thrice).index.read_text()
    assert said in (thrice.beside("report") / "report.md").read_text()
    assert "Grown in" not in write_report(once).index.read_text()


@pytest.mark.parametrize(
    ("mode", "settings", "said"),
    [
        ("refine", {"points": "two"}, "experiment.refine needs points"),
        ("best", {"trials": 3}, "experiment.best needs trials and finalists"),
        ("ablate", ["full"], "experiment.ablate needs source and target and path"),
    ],
)
def test_a_mode_that_study_does_not_write_is_refused(
    tmp_path: Path, mode: str, settings: object, said: str
) -> None:
    directory = changed(write_synthetic_experiment(tmp_path / "a"), **{mode: settings})
    with pytest.raises(ValueError, match=re.escape(said)):
        load(directory)
