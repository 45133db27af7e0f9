"""``python -m analysis``: what it prints, and one sentence for input that it cannot read."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from analysis.__main__ import COMMANDS, main
from analysis.claims import claims
from analysis.cli import claims as claims_command
from analysis.cli import report as report_command
from analysis.figures import report as figures_report
from tests.doubles import Defects, run_id, write_synthetic_experiment


@pytest.fixture
def no_pixels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures_report, "figure", lambda *_: b"<svg/>")


@pytest.mark.usefixtures("no_pixels")
def test_report_prints_the_answers_and_where_the_page_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_synthetic_experiment(tmp_path / "quickstart")

    assert main(["report", str(path)]) == 0
    printed = capsys.readouterr()
    lines = printed.out.splitlines()
    assert lines[0].startswith("Model lab64, task arithmetic (sum3), 3 search seeds and 3 report")
    questions = {claim.question for claim in claims()}
    assert any(lines[1].startswith(f"{question} Supported") for question in questions)
    assert any(line.startswith("C3 supported [lora-r1, full]:") for line in lines)
    assert lines[-1] == f"report: {path / 'report' / 'index.html'}"
    assert printed.err == ""


@pytest.mark.usefixtures("no_pixels")
def test_report_as_json_is_nothing_but_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_synthetic_experiment(tmp_path / "quickstart")

    assert main(["report", str(path), "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["name"] == "quickstart"
    assert {arm["arm"] for arm in summary["arms"]} == {"full", "lora-r1", "lora-r8"}
    assert (path / "report" / "index.html").is_file()


@pytest.mark.usefixtures("no_pixels")
def test_a_slow_report_says_on_the_side_that_it_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report_command, "SLOW_S", -1.0)
    path = write_synthetic_experiment(tmp_path / "quickstart")

    assert main(["report", str(path), "--json"]) == 0
    printed = capsys.readouterr()
    assert printed.err == "54 runs read; drawing figures\n"
    assert json.loads(printed.out)["runs"] == 54


def test_claims_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_synthetic_experiment(tmp_path / "quickstart")

    assert main(["claims", str(path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {"C1", "C2", "C3"} <= {claim["claim_id"] for claim in found}
    assert not (path / "report").exists()


def test_claims_name_those_that_the_sweep_says_nothing_about(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_synthetic_experiment(tmp_path / "quickstart")

    assert main(["claims", str(path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    ids = {claim.claim_id for claim in claims()}
    silent = {line.split()[0] for line in lines if " not addressed: it would need " in line}
    judged = {line.split()[0] for line in lines[1:]} - silent
    assert silent and judged and silent | judged == ids


def test_claims_of_an_unfinished_sweep_say_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    defects = Defects(missing=[run_id("full", "search", 2e-4, 0)])
    path = write_synthetic_experiment(tmp_path / "quickstart", defects=defects)

    assert main(["claims", str(path)]) == 0
    subject, banner, *lines = capsys.readouterr().out.splitlines()
    verdicts = [line for line in lines if "not addressed" not in line]
    assert subject.startswith("Model lab64, task arithmetic (sum3), 3 search seeds")
    assert banner.startswith("Unfinished: 53 of 54 runs")
    assert verdicts and all(line.split()[1] == "undecided" for line in verdicts)
    ids = [line.split()[0] for line in verdicts]
    assert len(set(ids)) == len(ids)  # one reason, one line
    assert any("[lora-r1, full; lora-r8, full]: Unfinished" in line for line in verdicts)


def file_in(name: str, text: str) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        path.mkdir()
        (path / name).write_text(text)

    return write


def changed_plan(**changes: Any) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        write_synthetic_experiment(path)
        plan = json.loads((path / "plan.json").read_text())
        (path / "plan.json").write_text(json.dumps(plan | changes))

    return write


BAD: dict[str, tuple[Callable[[Path], None], str]] = {
    "nowhere": (lambda path: None, "no such experiment directory: "),
    "empty": (lambda path: path.mkdir(), "the experiment directory is empty: "),
    "a file": (lambda path: path.write_text("x") and None, "no such experiment directory: "),
    "foreign": (file_in("results.csv", "a,b\n"), "not an experiment directory: no plan.json in "),
    "broken": (file_in("plan.json", "{"), "plan.json is not valid JSON"),
    "not an object": (file_in("plan.json", "[]"), "holds a JSON list, not an object"),
    "no plan of ours": (file_in("plan.json", "{}"), "is not a plan written by study: it lacks"),
    "unknown schema": (
        changed_plan(schema_version=99),
        "has schema_version 99; this version of analysis reads 1",
    ),
    "no arms": (changed_plan(arms=[]), "each of its arms needs a config"),
}


@pytest.mark.parametrize("command", ["report", "claims"])
@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_sentence_and_exit_code_two(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str, case: str
) -> None:
    write, said = BAD[case]
    write(tmp_path / "sweep")

    assert main([command, str(tmp_path / "sweep")]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("error: ") and said in printed.err
    assert printed.err.count("\n") == 1


@pytest.mark.parametrize(
    ("fault", "code", "said"),
    [
        (KeyboardInterrupt(), 130, "interrupted: run the command again\n"),
        (PermissionError(13, "Permission denied", "runs/x"), 2, "runs/x: Permission denied\n"),
    ],
)
def test_an_end_from_outside_is_one_sentence(
    fault: BaseException,
    code: int,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def end(*_: object) -> None:
        raise fault

    monkeypatch.setattr(claims_command, "read", end)
    assert main(["claims", "runs/x"]) == code
    assert capsys.readouterr().err.removeprefix("error: ") == said


@pytest.mark.timeout(60)
def test_a_reader_that_has_seen_enough_is_no_fault(tmp_path: Path) -> None:
    path = write_synthetic_experiment(tmp_path / "quickstart")
    command = f"{sys.executable} -m analysis claims {path} | true"

    done = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_help_shows_examples(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ending:
        main(["--help"])

    assert ending.value.code == 0
    shown = capsys.readouterr().out
    assert "python -m analysis report runs/quickstart" in shown
    assert "python -m analysis claims runs/quickstart --json" in shown


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ending:
        main([command.rstrip("_"), "--help"])

    assert ending.value.code == 0
    assert f"python -m analysis {command.rstrip('_')}" in capsys.readouterr().out


@pytest.mark.timeout(60)
def test_claims_need_no_matplotlib_and_nothing_needs_torch(tmp_path: Path) -> None:
    path = write_synthetic_experiment(tmp_path / "quickstart")
    code = (
        "import sys; from analysis.__main__ import main\n"
        f"main(['claims', {str(path)!r}])\n"
        "assert 'matplotlib' not in sys.modules\n"
        "import analysis.reporting.report\n"
        "heavy = {'torch', 'trl', 'peft', 'wandb', 'hydra'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
