from __future__ import annotations

import io

from rich.console import Console

from study.config import AblateConfig
from study.plan.experiment import Plan, PlannedRun
from study.sweep.view.path_table import print_path
from tests.plans import toy_plan
from tests.unit.plan.ablations import linear, planned, run_to_the_end, scored


def printed(plan: Plan, silent: str = "") -> list[list[str]]:
    """The cells of each row below the head, of the experiment at its end."""

    def score(plan: Plan, run: PlannedRun) -> float | None:
        return None if run.arm == silent else scored(linear)(plan, run)

    text = io.StringIO()
    print_path(Console(file=text, width=140), *run_to_the_end(plan, score))
    rows = [line for line in text.getvalue().splitlines() if line.startswith("│")]
    return [[cell.strip() for cell in row.strip("│").split("│")] for row in rows]


def test_a_path_shows_what_was_taken_and_what_was_not() -> None:
    assert printed(planned()) == [
        ["default", "0.000", "", ""],
        [
            "method.rank",
            "10.000",
            "+10.000",
            "objective.steps +1.000, objective.prompts_per_step +0.100",
        ],
        ["objective.steps", "11.000", "+1.000", "objective.prompts_per_step +0.100"],
        ["objective.prompts_per_step", "11.100", "+0.100", ""],
    ]


def test_factors_changed_alone_stand_beside_all_of_them() -> None:
    alone = AblateConfig(source="default", target="tuned", path=False)
    assert printed(planned(ablate=alone)) == [
        ["default", "0.000", ""],
        ["method.rank", "10.000", "+10.000"],
        ["objective.steps", "1.000", "+1.000"],
        ["objective.prompts_per_step", "0.100", "+0.100"],
        ["all (tuned)", "11.100", "+11.100"],
    ]


def test_a_source_without_a_score_has_no_first_gain() -> None:
    rows = printed(planned(), silent="default")
    assert rows[0][:2] == ["default", "no score"]
    assert [row[0] for row in rows[1:]] == ["objective.steps", "objective.prompts_per_step"]


def test_other_experiments_have_no_such_table() -> None:
    text = io.StringIO()
    print_path(Console(file=text), toy_plan(), {}, {})
    assert text.getvalue() == ""
