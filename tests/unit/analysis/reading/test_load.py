"""What counts as a result, what is left out, and that nothing is left out in silence."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from analysis.reading.load import load, provenance, samples
from study.records.record import Record
from tests.doubles import BASE, LORA_GRID, Defects, run_id, write_synthetic_experiment

FULL_0 = run_id("full", "search", 2e-4, 0)
R1_0 = run_id("lora-r1", "search", 2e-4, 0)


def edit_plan(path: Path, change: Callable[[Any], object]) -> None:
    plan = json.loads((path / "plan.json").read_text())
    change(plan)
    (path / "plan.json").write_text(json.dumps(plan))


def reasons(path: Path) -> dict[tuple[str, str], str]:
    excluded = load(path).excluded
    return {(row.run_id, row.kind): row.reason for row in excluded.itertuples()}


def test_a_finished_experiment_is_complete_and_leaves_nothing_out(tmp_path: Path) -> None:
    sweep = load(write_synthetic_experiment(tmp_path / "quickstart"))

    assert (sweep.name, sweep.kind, sweep.is_experiment) == ("quickstart", "experiment", True)
    assert sweep.complete
    assert sweep.expected == len(sweep.runs) == 3 * (5 * 3 + 3)
    assert set(sweep.planned["status"]) == {"completed"}
    assert sweep.excluded.empty and sweep.attempts.empty


def test_runs_have_the_columns_of_the_record_in_plan_order(tmp_path: Path) -> None:
    sweep = load(write_synthetic_experiment(tmp_path / "quickstart"))

    assert list(sweep.runs.columns) == list(Record.__dataclass_fields__)
    assert list(sweep.runs["run_id"]) == list(sweep.planned["run_id"])
    row = sweep.runs.set_index("run_id").loc[FULL_0]
    assert row["score_final"] == pytest.approx(0.50 - 0.01)
    assert row["score_base"] == BASE


def test_metrics_are_tidy(tmp_path: Path) -> None:
    sweep = load(write_synthetic_experiment(tmp_path / "quickstart"))

    assert list(sweep.metrics.columns) == ["run_id", "step", "metric", "value"]
    mine = sweep.metrics[sweep.metrics["run_id"] == FULL_0]
    accuracy = mine[mine["metric"] == "eval/accuracy"].set_index("step")["value"]
    assert list(accuracy.index) == list(range(0, 201, 20))
    assert accuracy[0] == pytest.approx(BASE)
    assert accuracy[200] == pytest.approx(0.49)
    assert set(mine["metric"]) == {"eval/accuracy", "eval/greedy_accuracy", "train/loss"}


def test_selections_are_read(tmp_path: Path) -> None:
    sweep = load(write_synthetic_experiment(tmp_path / "quickstart"))

    assert sweep.selections == {"full": 2e-4, "lora-r1": 2e-3, "lora-r8": 2e-3}


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


def test_report_runs_that_are_still_to_be_planned_are_expected(tmp_path: Path) -> None:
    sweep = load(write_synthetic_experiment(tmp_path / "q", report_joined=False))

    assert (len(sweep.runs), sweep.expected, sweep.complete) == (45, 54, False)


def test_report_seeds_that_were_declared_later_are_expected(tmp_path: Path) -> None:
    path = write_synthetic_experiment(tmp_path / "q")
    edit_plan(path, lambda plan: plan["experiment"]["seeds"]["report"].append(103))
    sweep = load(path)

    assert (len(sweep.runs), sweep.expected, sweep.complete) == (54, 57, False)


def test_an_arm_whose_search_found_no_score_will_never_report(tmp_path: Path) -> None:
    silent = [run_id("lora-r1", "search", rate, seed) for rate in LORA_GRID for seed in range(3)]
    defects = Defects(no_signal=silent)
    path = write_synthetic_experiment(tmp_path / "q", defects=defects, report_joined=False)
    sweep = load(path)

    assert (len(sweep.runs), sweep.expected) == (45, 45 + 2 * 3)


def test_samples_and_provenance_of_a_run(tmp_path: Path) -> None:
    sweep = load(write_synthetic_experiment(tmp_path / "q", completion="7+5=12"))

    assert [line["completion"] for line in samples(sweep, FULL_0, 2)] == ["7+5=12"]
    assert provenance(sweep, FULL_0)["packages"]["trl"] == "1.16.0"
    (sweep.path / "full" / FULL_0 / "provenance.json").unlink()
    assert provenance(sweep, FULL_0) == {}


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        ("{", "is not valid JSON"),
        ("[]", "holds a JSON list, not an object"),
        ('{"a": 1}', "is not a plan written by study"),
        ('{"schema_version": 7, "experiment": 1, "arms": 1, "runs": 1}', "schema_version 7"),
        ('{"schema_version": 1, "experiment": {}, "arms": {}, "runs": []}', "lacks looks, max_r"),
    ],
)
def test_a_foreign_plan_is_refused_in_a_sentence(tmp_path: Path, plan: str, said: str) -> None:
    (tmp_path / "plan.json").write_text(plan)

    with pytest.raises(ValueError, match=r"plan\.json") as error:
        load(tmp_path)
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"arms": {"full": {}}}, "each of its arms needs a config"),
        ({"runs": [{"run_id": "a"}]}, "each of its runs needs run_id, arm"),
        ({"experiment": 1}, "its experiment needs name, kind and seeds"),
        ({"looks": None}, "looks >= 1 must hold, got None"),
        ({"max_retries": "2"}, "max_retries >= 0 must hold, got '2'"),
    ],
)
def test_a_plan_with_foreign_parts_is_refused(
    tmp_path: Path, change: dict[str, object], said: str
) -> None:
    path = write_synthetic_experiment(tmp_path / "q")
    edit_plan(path, lambda plan: plan.update(change))

    with pytest.raises(ValueError, match=said):
        load(path)


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        (("runs", 0, "phase"), "warm-up", "a phase of search or report"),
        (("runs", 0, "seed"), None, "each of its runs needs"),
        (("runs", 0, "learning_rate"), 0, "each of its runs needs"),
        (("arms", "full", "learning_rates"), [], "each of its arms needs a config"),
        (("experiment", "kind"), "hunch", "its kind must be one of experiment, adhoc, single"),
        (("experiment", "seeds"), [0, 1], "its seeds need search and report"),
        (("experiment", "seeds", "report"), 100, "seeds.report must be a list of integers"),
        (("experiment", "seeds", "report"), [2, 100], "both hold [2]"),
        (("experiment", "margin"), 0, "experiment.margin > 0 must hold, got 0"),
        (("experiment", "factors"), None, "experiment.factors must be a list"),
        (("experiment", "early_stopping"), {"keep": 0.5}, "needs grace_steps, keep and window"),
        (("arms", "full", "config", "method"), None, "each of its arms needs a config"),
        (("arms", "full", "config", "task"), "sums", "each of its arms needs a config"),
        (("arms", "full", "learning_rates"), ["1e-4"], "each of its arms needs a config"),
    ],
)
def test_a_malformed_plan_is_one_sentence(
    tmp_path: Path, place: tuple[Any, ...], value: object, said: str
) -> None:
    path = write_synthetic_experiment(tmp_path / "q")

    def spoil(plan: Any) -> None:
        for key in place[:-1]:
            plan = plan[key]
        plan[place[-1]] = value

    edit_plan(path, spoil)
    with pytest.raises(ValueError, match=re.escape(said)):
        load(path)


def test_a_plan_that_names_a_run_twice_is_refused(tmp_path: Path) -> None:
    path = write_synthetic_experiment(tmp_path / "q")
    edit_plan(path, lambda plan: plan["runs"].append(plan["runs"][0]))

    with pytest.raises(ValueError, match=r"names run '.*' twice"):
        load(path)


def test_a_cell_under_two_ids_is_refused(tmp_path: Path) -> None:
    path = write_synthetic_experiment(tmp_path / "q")
    edit_plan(path, lambda plan: plan["runs"].append({**plan["runs"][0], "run_id": "other"}))

    with pytest.raises(ValueError, match="names 2 runs of arm 'full' in the search phase at"):
        load(path)


def test_a_broken_selection_is_refused(tmp_path: Path) -> None:
    path = write_synthetic_experiment(tmp_path / "q")
    (path / "selection" / "full.json").write_text('{"learning_rate": null}')

    with pytest.raises(ValueError, match="names no learning_rate, got None"):
        load(path)
