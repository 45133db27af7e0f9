"""A plan divided into attributes of a study, and what its growth writes."""

from __future__ import annotations

from typing import Any

from study.plan.experiment import to_json
from study.plan.portions import portions, whole
from tests.plans import toy_plan


def content(runs: int, arms: int = 1) -> dict[str, Any]:
    return {
        "schema_version": 1,
        "looks": runs,
        "arms": {f"a{i}": {"rank": i} for i in range(arms)},
        "reserve": {"later": {"rank": 9}},
        "runs": [{"run_id": str(i)} for i in range(runs)],
    }


def test_a_plan_is_divided_by_arms_and_by_a_hundred_runs() -> None:
    divided = portions(content(230))
    assert list(divided) == ["arm:a0", "arm:later", "runs:0", "runs:1", "runs:2", "plan"]
    assert [len(divided[f"runs:{k}"]) for k in range(3)] == [100, 100, 30]
    assert divided["plan"] == {
        "schema_version": 1, "looks": 230, "arms": ["a0"], "reserve": ["later"], "runs": 230
    }  # fmt: skip


def test_what_was_divided_is_whole_again() -> None:
    real = to_json(toy_plan())
    assert whole(portions(real)) == real
    for runs in (0, 1, 99, 100, 101, 200):
        assert whole(portions(content(runs))) == content(runs)


def test_growth_changes_the_last_portion_and_the_head() -> None:
    before, after = portions(content(230)), portions(content(231, arms=2))
    changed = [key for key, value in after.items() if before.get(key) != value]
    assert changed == ["arm:a1", "runs:2", "plan"]


def test_a_plan_that_is_being_written_is_the_one_before() -> None:
    old, new = portions(content(199)), portions(content(301, arms=3))
    parts = list(new)
    for written in range(len(parts)):
        torn = old | {key: new[key] for key in parts[:written]}
        assert whole(torn) == content(199)
    assert whole(old | new) == content(301, arms=3)


def test_what_others_wrote_comes_back_as_it_is() -> None:
    assert whole({"plan": []}) == []
    assert whole({"plan": {}}) == {}
