"""``python -m analysis``: what it prints, and one sentence for input that it cannot read."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from analysis.__main__ import main
from analysis.figures import report as figures_report
from tests.doubles import Defects, run_id, write_synthetic_experiment


def test_report_prints_the_answers_and_where_the_page_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(figures_report, "figure", lambda *_: b"<svg/>")
    path = write_synthetic_experiment(tmp_path / "quickstart")

    assert main(["report", str(path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("Model lab64, task arithmetic (sum3), 3 search seeds and 3 report")
    assert lines[1].startswith("Does LoRA score the same as full fine-tuning? Supported")
    assert any(line.startswith("C3 supported [lora-r1, full]:") for line in lines)
    assert lines[-1] == f"report: {path / 'report' / 'index.html'}"


def test_claims_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_synthetic_experiment(tmp_path / "quickstart")

    assert main(["claims", str(path), "--json"]) == 0
    claims = json.loads(capsys.readouterr().out)
    assert {claim["claim_id"] for claim in claims} == {"C1", "C2", "C3"}
    assert not (path / "report").exists()


def test_claims_of_an_unfinished_sweep_say_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    defects = Defects(missing=[run_id("full", "search", 2e-4, 0)])
    path = write_synthetic_experiment(tmp_path / "quickstart", defects=defects)

    assert main(["claims", str(path)]) == 0
    subject, banner, *verdicts = capsys.readouterr().out.splitlines()
    assert subject.startswith("Model lab64, task arithmetic (sum3), 3 search seeds")
    assert banner.startswith("Unfinished: 53 of 54 runs")
    assert verdicts and all(line.split()[1] == "undecided" for line in verdicts)


@pytest.mark.parametrize("command", ["report", "claims"])
@pytest.mark.parametrize(
    ("directory", "said"),
    [
        ("nowhere", "no such experiment directory: "),
        ("empty", "the experiment directory is empty: "),
        ("foreign", "not an experiment directory: no plan.json in "),
        ("broken", "plan.json is not valid JSON"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_two(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    command: str,
    directory: str,
    said: str,
) -> None:
    for name in ("empty", "foreign", "broken"):
        (tmp_path / name).mkdir()
    (tmp_path / "foreign" / "results.csv").write_text("a,b\n")
    (tmp_path / "broken" / "plan.json").write_text("{")

    assert main([command, str(tmp_path / directory)]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("error: ") and said in printed.err
    assert printed.err.count("\n") == 1


def test_help_shows_examples(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ending:
        main(["--help"])

    assert ending.value.code == 0
    shown = capsys.readouterr().out
    assert "python -m analysis report runs/quickstart" in shown
    assert "python -m analysis claims runs/quickstart --json" in shown


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
