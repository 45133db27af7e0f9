"""A plan that was not written by ``study``, or was damaged, is refused in a sentence."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from analysis.reading.load import load
from tests.doubles import write_synthetic_experiment


def edit_plan(path: Path, change: Callable[[Any], object]) -> None:
    plan = json.loads((path / "plan.json").read_text())
    change(plan)
    (path / "plan.json").write_text(json.dumps(plan))


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
