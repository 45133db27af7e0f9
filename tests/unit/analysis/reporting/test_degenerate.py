"""Whatever lies in an experiment directory: a page that explains, or one sentence."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from analysis.__main__ import main
from analysis.estimates.search import search_summary
from analysis.figures import report as figures_report
from analysis.reading.load import load
from tests.doubles import (
    SYNTHETIC_ARMS,
    Defects,
    SyntheticArm,
    run_id,
    write_synthetic_experiment,
)
from tests.unit.analysis.reporting.pages import ALL_RUNS, Page


def no_runs(path: Path) -> Path:
    write_synthetic_experiment(path, defects=Defects(missing=ALL_RUNS))
    plan = json.loads((path / "plan.json").read_text()) | {"runs": []}
    (path / "plan.json").write_text(json.dumps(plan))
    return path


def one_run(path: Path) -> Path:
    arms = {"full": SyntheticArm(None, (2e-4,), (0.5,), 0.5)}
    return write_synthetic_experiment(
        path, arms=arms, search_seeds=(0,), report_seeds=(), kind="single"
    )


def one_rate(path: Path) -> Path:
    return write_synthetic_experiment(
        path, arms={"lora-r8": SyntheticArm(8, (2e-3,), (0.5,), 0.5)}, search_seeds=(0,)
    )


def unequal_grids(path: Path) -> Path:
    full = SyntheticArm(None, (2e-5, 2e-4, 2e-3), (0.2, 0.5, 0.1), 0.5)
    return write_synthetic_experiment(path, arms={**SYNTHETIC_ARMS, "full": full})


HOLES = [run_id("full", "search", 2e-4, 0), run_id("lora-r8", "search", 6e-4, 2)]
CASES: dict[str, tuple[Callable[[Path], Path], str]] = {
    "plan without runs": (no_runs, "Unfinished: 0 of"),
    "no record": (
        lambda path: write_synthetic_experiment(path, defects=Defects(missing=ALL_RUNS)),
        "No run of the search phase has a score yet.",
    ),
    "one run": (one_run, "A single run: drawn without verdicts."),
    "ad hoc": (
        lambda path: write_synthetic_experiment(path, kind="adhoc", report_seeds=()),
        "no criterion was declared, so it is drawn without verdicts",
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
        "search seeds, cross-fitted",
    ),
    "report phase not planned yet": (
        lambda path: write_synthetic_experiment(path, report_joined=False),
        "Unfinished: 45 of 54 runs.",
    ),
    "single arm": (
        lambda path: write_synthetic_experiment(path, arms={"full": SYNTHETIC_ARMS["full"]}),
        "Not addressed by this sweep",
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
    "unequal grids": (unequal_grids, "3 to 5 learning rates an arm"),
    "holes": (
        lambda path: write_synthetic_experiment(path, defects=Defects(missing=HOLES)),
        "not every search run has a score, so there is no LR*",
    ),
    "unknown schema of records": (
        lambda path: write_synthetic_experiment(path, defects=Defects(unknown_schema=ALL_RUNS)),
        "has unknown schema_version 99, this version reads 1",
    ),
}


@pytest.mark.usefixtures("no_pixels")
@pytest.mark.parametrize("case", CASES)
def test_the_command_line_explains_what_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], case: str
) -> None:
    write, said = CASES[case]
    path = write(tmp_path / "q")

    assert main(["report", str(path)]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    assert printed.out.splitlines()[-1] == f"report: {path / 'report' / 'index.html'}"
    shown = Page((path / "report" / "index.html").read_text(encoding="utf-8"))
    assert said in shown.text
    assert not re.search(r"\b(nan|None|NaN|inf)\b", shown.body)
    assert (path / "report" / "report.md").stat().st_size > 0


@pytest.mark.usefixtures("no_pixels")
@pytest.mark.parametrize("case", ["no record", "one run", "all diverged"])
def test_the_summary_of_an_odd_sweep_is_strict_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], case: str
) -> None:
    write, _ = CASES[case]
    path = write(tmp_path / "q")

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    assert main(["report", str(path), "--json"]) == 0
    summary = json.loads(capsys.readouterr().out, parse_constant=refuse)
    assert len(summary["arms"]) == len(load(path).plan["arms"])


@pytest.mark.timeout(60)
def test_a_sweep_in_which_every_run_diverged_can_be_drawn(tmp_path: Path) -> None:
    write, _ = CASES["all diverged"]
    sweep = load(write(tmp_path / "q"))

    drawn = figures_report.write_figures(sweep, search_summary(sweep), tmp_path / "figures")
    assert all(bool(figure.svg) != bool(figure.missing) for figure in drawn)
    assert next(figure for figure in drawn if not figure.lacks).svg
