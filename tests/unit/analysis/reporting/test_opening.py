"""What the page of a search or an ablation says first, and that its claims stand back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from analysis.reading.load import load
from analysis.reading.sweep import Sweep
from analysis.reporting.json_text import to_json
from analysis.reporting.opening import opening
from analysis.reporting.report import write_report
from analysis.reporting.winner import NONE_COMPLETE, UNFINISHED, winner
from study.plan import best
from study.plan.best import simultaneous
from tests.doubles import write_synthetic_experiment
from tests.unit.analysis.ablated_sweeps import finished, sweep_of
from tests.unit.analysis.reporting.pages import page
from tests.unit.plan.ablations import linear, no_noise
from tests.unit.plan.joint import joint, run_to_the_end, truth


def changed(directory: Path, **experiment: Any) -> Path:
    """A synthetic experiment whose plan says something else."""
    content = json.loads((directory / "plan.json").read_text())
    content["experiment"] |= experiment
    (directory / "plan.json").write_text(json.dumps(content))
    return directory


def joint_sweep(without: int = 0) -> Sweep:
    """A joint search of known truth, less its last records."""
    plan, records = run_to_the_end(joint(), lambda run: truth(run) + run.seed / 10_000)
    kept = dict(list(records.items())[: len(records) - without])
    return sweep_of(plan, kept, {})


def test_the_winner_is_that_of_the_sweep_with_its_interval() -> None:
    plan, records = run_to_the_end(joint(), lambda run: truth(run) + run.seed / 10_000)
    known = best.winner(plan, records)
    found = winner(sweep_of(plan, records, {}))

    assert known is not None and found is not None
    assert (found.arm, found.learning_rate) == (known.arm, known.learning_rate)
    assert found.report_scores == known.scores and found.report_mean == known.mean
    assert (found.finalists, found.trials) == (known.finalists, known.trials) == (2, 12)
    ends = simultaneous(list(known.scores.values()), known.finalists)
    assert ends is not None and found.interval == pytest.approx((ends.low, ends.high))
    assert list(found.overrides) == plan.experiment.arms[known.arm]


def test_a_search_with_a_run_to_come_has_no_winner() -> None:
    assert winner(joint_sweep(without=1)) is None
    assert opening(joint_sweep(without=1)).lines == [UNFINISHED]


def test_a_finalist_without_every_report_score_does_not_win() -> None:
    sweep = joint_sweep()
    full = winner(sweep)
    assert full is not None
    mine = sweep.runs["run_id"].isin(list(full.report_scores)[:1])
    sweep.runs.loc[mine, "score_final"] = float("nan")
    second = winner(sweep)
    assert second is not None
    assert (second.arm, second.learning_rate) != (full.arm, full.learning_rate)

    sweep.runs.loc[sweep.runs["phase"] == "report", "score_final"] = float("nan")
    assert winner(sweep) is None and opening(sweep).lines == [NONE_COMPLETE]


@pytest.mark.usefixtures("no_pixels")
def test_a_joint_search_opens_with_its_winner_and_folds_its_claims(tmp_path: Path) -> None:
    """The synthetic sweep as a joint one: the finalist lora-r8 or another scores best."""
    joined = {"choices": {}, "low": 1e-5, "high": 1e-1, "trials": 15, "finalists": 3}
    sweep = load(changed(write_synthetic_experiment(tmp_path / "a"), best=joined))
    report = write_report(sweep)
    runs = sweep.runs[sweep.runs["phase"] == "report"]
    means: pd.Series[float] = runs.groupby("arm")["score_final"].mean()
    top = str(means.idxmax())

    found = report.findings.opening.winner
    assert found is not None and found.arm == top
    first, score = report.findings.opening.lines
    assert first.startswith(f"Best setting: {top}")
    assert f"{means.max():.3f}, mean over 3 report seeds, 90% interval" in score
    assert "best of 3 finalists of 15 trials" in score
    shown = page(report)
    assert shown.body.index(first) < shown.body.index("A joint search:")
    assert 'class="answer"' not in shown.html and report.findings.answers == []
    folded = shown.html.split("<details><summary>What each claim would need")
    assert "This experiment decides no claim, because a joint search" in folded[0]
    assert '<span class="verdict ' not in folded[0] and '<span class="verdict ' in folded[1]
    text = (report.index.parent / "report.md").read_text()
    assert text.index("**Best setting: ") < text.index("## Verdicts") < text.index("<details>")
    summary = json.loads(to_json(report.summary))
    assert summary["winner"]["arm"] == top and summary["opening"] == [first, score]
    assert report.headlines[1:3] == [first, score]


def test_an_ablation_opens_with_its_steps() -> None:
    """10 for a, 1 for b, 0.1 for c: the path takes them in that order."""
    found = opening(finished(linear, no_noise))
    steps, whole = found.lines

    assert steps.startswith("From default to tuned, in the order of the path: method.rank 1 to 2")
    places = [steps.index(key) for key in ("rank 1 to 2 +10", "steps 3 to 6 +1", "4 to 8 +0.1")]
    assert places == sorted(places)
    assert whole.startswith("All together: +11.100")
    assert found.decides_none.startswith("This experiment decides no claim, because an ablation")


@pytest.mark.usefixtures("no_pixels")
def test_a_search_that_stops_early_opens_with_its_scores(tmp_path: Path) -> None:
    stopping = {"grace_steps": 1, "keep": 0.5, "window": 1}
    sweep = load(changed(write_synthetic_experiment(tmp_path / "a"), early_stopping=stopping))
    report = write_report(sweep)

    assert report.findings.answers == [] and report.findings.summary
    assert "because this search stops poor learning rates early" in page(report).body


@pytest.mark.usefixtures("no_pixels")
def test_an_experiment_with_claims_opens_with_them(tmp_path: Path) -> None:
    report = write_report(load(write_synthetic_experiment(tmp_path / "a")))

    assert report.findings.opening.lines == [] and report.findings.answers
    assert "What each claim would need" not in page(report).html
    assert '<span class="arm">lora-<wbr>r1' in page(report).html
