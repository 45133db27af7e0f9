"""What counts as a result, what is left out, and that nothing is left out in silence."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from analysis.reading.load import load
from tests.doubles import Defects, run_id, write_synthetic_experiment

FULL_0 = run_id("full", "search", 2e-4, 0)
R1_0 = run_id("lora-r1", "search", 2e-4, 0)


def reasons(path: Path) -> dict[tuple[str, str], str]:
    excluded = load(path).excluded
    return {(row.run_id, row.kind): row.reason for row in excluded.itertuples()}


def test_a_planned_run_without_a_record_is_listed(tmp_path: Path) -> None:
    path = write_synthetic_experiment(tmp_path / "q", defects=Defects(missing=[FULL_0]))
    sweep = load(path)

    assert not sweep.complete
    assert (len(sweep.runs), sweep.expected) == (53, 54)
    assert (
        dict(zip(sweep.planned["run_id"], sweep.planned["status"], strict=True))[FULL_0]
        == "missing"
    )
    assert "not started or still running" in reasons(path)[FULL_0, "no record"]


@pytest.mark.parametrize(("attempts", "status"), [(2, "missing"), (3, "given up")])
def test_failed_attempts_are_listed_and_give_a_run_up_once_retries_are_spent(
    tmp_path: Path, attempts: int, status: str
) -> None:
    defects = Defects(missing=[FULL_0], failed_attempts={FULL_0: attempts})
    path = write_synthetic_experiment(tmp_path / "q", defects=defects)
    sweep = load(path)

    assert len(sweep.attempts) == attempts
    assert set(sweep.attempts["status"]) == {"oom"}
    planned = sweep.planned.set_index("run_id")["status"]
    assert planned[FULL_0] == status
    assert f"after {attempts} failed attempts" in reasons(path)[FULL_0, "no record"]
    assert reasons(path)[FULL_0, "failed attempt"] == "oom (synthetic: out of memory)"


def test_a_reopened_run_starts_with_fresh_retries(tmp_path: Path) -> None:
    defects = Defects(missing=[FULL_0], failed_attempts={FULL_0: 3})
    path = write_synthetic_experiment(tmp_path / "q", defects=defects)
    with (path / "full" / FULL_0 / "attempts.jsonl").open("a") as file:
        file.write(json.dumps({"attempt": 0, "status": "reopened", "spent": False}) + "\n")

    sweep = load(path)
    assert sweep.attempts.empty
    assert sweep.planned.set_index("run_id")["status"][FULL_0] == "missing"


def test_a_failed_attempt_of_a_finished_run_takes_no_result_away(tmp_path: Path) -> None:
    defects = Defects(failed_attempts={FULL_0: 1})
    sweep = load(write_synthetic_experiment(tmp_path / "q", defects=defects))

    assert sweep.complete and len(sweep.runs) == 54
    assert list(sweep.excluded["kind"]) == ["failed attempt"]


def test_a_record_outside_the_plan_is_excluded_with_the_reason(tmp_path: Path) -> None:
    path = write_synthetic_experiment(tmp_path / "q", defects=Defects(unplanned=[R1_0]))
    sweep = load(path)

    assert R1_0 not in set(sweep.runs["run_id"])
    assert "plan.json does not name" in reasons(path)[R1_0, "not planned"]


def test_one_run_cannot_count_twice(tmp_path: Path) -> None:
    path = write_synthetic_experiment(tmp_path / "q")
    shutil.copytree(path / "full" / FULL_0, path / "lora-r1" / FULL_0)
    sweep = load(path)

    assert list(sweep.runs["run_id"]).count(FULL_0) == 1
    assert (FULL_0, "not planned") in reasons(path)


def test_a_record_copied_from_another_run_is_no_result(tmp_path: Path) -> None:
    path = write_synthetic_experiment(tmp_path / "q")
    other = run_id("full", "search", 2e-4, 1)
    shutil.copy(path / "full" / other / "record.json", path / "full" / FULL_0 / "record.json")

    assert "says run_id=" in reasons(path)[FULL_0, "unreadable record"]
    assert FULL_0 not in set(load(path).runs["run_id"])


def test_an_unknown_schema_version_is_listed(tmp_path: Path) -> None:
    path = write_synthetic_experiment(tmp_path / "q", defects=Defects(unknown_schema=[FULL_0]))

    assert "unknown schema_version 99" in reasons(path)[FULL_0, "unreadable record"]
    assert len(load(path).runs) == 53


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('{"schema_version": 1, "run', "is not valid JSON"),
        ("[1, 2]", "holds a JSON list"),
        ('{"schema_version": 1}', "lacks alpha_rule, arm, "),
    ],
)
def test_a_broken_record_is_listed_not_raised(tmp_path: Path, content: str, said: str) -> None:
    path = write_synthetic_experiment(tmp_path / "q")
    (path / "full" / FULL_0 / "record.json").write_text(content)

    assert said in reasons(path)[FULL_0, "unreadable record"]


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("status", "crashed", "unknown status 'crashed'"),
        ("score_final", "high", "score_final='high', not a number"),
        ("score_final", None, "has status 'completed' and no score_final"),
        ("score_final", float("nan"), "score_final=nan, not a number"),
        ("score_base", float("inf"), "score_base=inf, not a number"),
        ("score_greedy", True, "score_greedy=True, not a number"),
        ("flags", None, "flags=None, not a list of texts"),
        ("flags", [1], "flags=[1], not a list of texts"),
        ("dtypes", "float32", "dtypes='float32', not an object"),
        ("wall_time_s", None, "wall_time_s=None, not a number"),
        ("steps_done", 0.5, "steps_done=0.5, not an integer"),
        ("git_commit", None, "git_commit=None, not text"),
        ("learning_rate", 3e-4, "says learning_rate=0.0003, the plan 0.0002"),
    ],
)
def test_a_record_with_a_wrong_value_is_listed(
    tmp_path: Path, key: str, value: object, said: str
) -> None:
    path = write_synthetic_experiment(tmp_path / "q")
    file = path / "full" / FULL_0 / "record.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {key: value}))

    assert said in reasons(path)[FULL_0, "unreadable record"]


def test_a_diverged_record_without_score_is_no_result(tmp_path: Path) -> None:
    path = write_synthetic_experiment(tmp_path / "q", defects=Defects(diverged=[FULL_0]))
    file = path / "full" / FULL_0 / "record.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"score_final": None}))

    assert "no score_final" in reasons(path)[FULL_0, "unreadable record"]
    assert not load(path).complete


def test_a_cut_line_of_metrics_is_left_out_and_said(tmp_path: Path) -> None:
    path = write_synthetic_experiment(tmp_path / "q")
    with (path / "full" / FULL_0 / "metrics.jsonl").open("a") as file:
        file.write('{"step": 200, "train/lo')

    assert reasons(path)[FULL_0, "unreadable metrics"].startswith("1 unreadable line of")
    assert FULL_0 in set(load(path).runs["run_id"])


def test_a_null_metric_is_no_number(tmp_path: Path) -> None:
    path = write_synthetic_experiment(tmp_path / "q")
    with (path / "full" / FULL_0 / "metrics.jsonl").open("a") as file:
        file.write('{"step": 201, "train/loss": null, "train/reward": 0.5}\n')

    last = load(path).metrics.query("run_id == @FULL_0 and step == 201")
    assert list(last["metric"]) == ["train/reward"]
