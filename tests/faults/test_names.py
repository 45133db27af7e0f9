"""No name from a config, a plan or a storage leads out of the directory that it belongs to."""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.__main__ import main
from analysis.reading.load import load
from study.config import ExperimentConfig, SeedsConfig
from study.config.experiment import RESERVED_ARM_NAMES
from study.config.laws import MAX_NAME, check_name, is_name
from study.sweep.launch.choices import arm_name
from tests.doubles import write_synthetic_experiment
from tests.storages import store_experiment

pytestmark = pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
WRONG = [
    "", ".", "..", "../x", "/x", "/", "x/y", "x\\y", "..\\x", "x\0y", "x\ny", "x ", "x\n", ".x",
    "-rf", "--out", "~", "$HOME", "*", "x" * (MAX_NAME + 1), "x" * 300, "ü", "f\u0443ll",
    "full\u200b", "\u202efull", "\uff0e\uff0e", "\u2025", "x\u2215y", "\x1b[2J", "'", '"', "`id`",
    "$(id)", "x;y", "x|y", "x:y", "%2e%2e",
]  # fmt: skip
"""Ways out of a directory, texts that puzzle a shell or a terminal, and look-alikes."""
RIGHT = ["full", "lora-r8", "e01_lr_ratio", "a.b", "_", "0", "x..y", "X" * MAX_NAME]


def experiment(name: str, arm: str) -> ExperimentConfig:
    return ExperimentConfig(
        name=name, hypothesis="h", decision_metric="m", criterion="c", arms={arm: []}, factors=[],
        seeds=SeedsConfig(search=[0], report=[]),
    )  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_name_that_leads_elsewhere_is_refused_in_one_sentence(name: str) -> None:
    for build in (lambda: check_name(name), lambda: experiment(name, "full"),
                  lambda: experiment("ex", name)):  # fmt: skip
        with pytest.raises(ValueError, match="a name may hold letters") as caught:
            build()
        assert "\n" not in str(caught.value) and "\x1b" not in str(caught.value)


@pytest.mark.parametrize("name", RIGHT)
def test_an_ordinary_name_is_taken(name: str) -> None:
    check_name(name)
    assert experiment(name, name).name == name


@given(st.text())
def test_whatever_is_a_name_stays_in_its_directory(name: str) -> None:
    inside = Path("/runs")
    if is_name(name):
        path = inside / name
        assert path.parent == inside and os.path.normpath(path) == str(path) != "/runs"
        assert len(os.fsencode(f".{name}.json.4194304")) <= 255  # the longest file made of it
        assert name.isascii() and name.isprintable()


@given(
    st.lists(st.text(min_size=1, max_size=40), min_size=1, max_size=3),
    st.sampled_from(["method", "model.path", "task.family"]),
)
def test_an_arm_of_a_bare_multirun_is_called_by_a_name_or_refused(
    values: list[str], key: str
) -> None:
    """``model.path=../../etc`` is a value like any other, and becomes part of a directory."""
    name = arm_name([key] * len(values), values)
    assert is_name(name) or not name or len(name) > MAX_NAME


@pytest.mark.parametrize("name", sorted(RESERVED_ARM_NAMES))
def test_an_arm_takes_no_folder_that_has_another_use(name: str) -> None:
    with pytest.raises(ValueError, match="that folder has another use"):
        experiment("ex", name)


def change(plan: dict, what: str, name: str) -> dict:
    text = json.dumps(plan)
    old = {"experiment": plan["experiment"]["name"], "arm": "lora-r8"}.get(what)
    if old is None:
        plan["runs"][0]["run_id"] = name
        return plan
    if what == "experiment":
        plan["experiment"]["name"] = name
        return plan
    plan = json.loads(text)
    plan["arms"][name] = plan["arms"].pop(old)
    for run in plan["runs"]:
        run["arm"] = name if run["arm"] == old else run["arm"]
    return plan


@pytest.mark.parametrize("what", ["experiment", "arm", "run"])
@pytest.mark.parametrize("name", ["../../secret", "/etc", "..", "x/../../y", "x\0y", "é" * 200])
def test_a_plan_that_leads_elsewhere_is_not_read(tmp_path: Path, what: str, name: str) -> None:
    directory = write_synthetic_experiment(tmp_path / "ex")
    plan = change(json.loads((directory / "plan.json").read_text()), what, name)
    (directory / "plan.json").write_text(json.dumps(plan))

    with pytest.raises(ValueError, match="no experiment, arm or run is called"):
        load(directory)


def test_a_plan_in_a_storage_writes_nothing_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The report of a storage is called after the experiment that somebody else put there."""
    directory = write_synthetic_experiment(tmp_path / "ex")
    plan = json.loads((directory / "plan.json").read_text())
    (directory / "plan.json").write_text(json.dumps(change(plan, "experiment", "../../evil")))
    url = store_experiment(directory, f"journal:{tmp_path}/storage")
    (tmp_path / "a" / "b").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "a" / "b")
    before = sorted(tmp_path.rglob("*"))

    assert main(["report", url]) == main(["export", url]) == 2
    assert "no experiment, arm or run is called '../../evil'" in capsys.readouterr().err
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("out", ["../x/..", "..", "x" * 300, "é", "a b", "-x"])
def test_an_import_is_called_by_a_name(
    tmp_path: Path, out: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """``--out`` may be any directory, but its last part becomes the sweep's name."""
    (tmp_path / "s.csv").write_text("method,learning_rate,score_final\nfull,1e-4,0.5\n")
    (tmp_path / "runs").mkdir()
    code = main(["import", str(tmp_path / "s.csv"), f"--out={tmp_path}/runs/{out}"])
    assert code == 2 and "a name may hold letters" in capsys.readouterr().err
    assert list((tmp_path / "runs").iterdir()) == []


def test_names_of_an_imported_sweep_are_data(tmp_path: Path) -> None:
    """Arms and run ids of others are shown, and never become a path."""
    rows = ["run_id,arm,method,learning_rate,score_final"]
    rows += [
        f"../../r{i},../../../etc/passwd,full,{rate},0.5" for i, rate in enumerate((1e-4, 1e-3))
    ]
    (tmp_path / "s.csv").write_text("\n".join(rows) + "\n")
    out = tmp_path / "runs" / "theirs"
    assert main(["import", str(tmp_path / "s.csv"), "--out", str(out)]) == 0
    before = {p for p in tmp_path.rglob("*") if out not in p.parents}

    assert main(["report", str(out)]) == 0
    assert {p for p in tmp_path.rglob("*") if out not in p.parents} == before


@pytest.mark.parametrize("verb", ["report", "export"])
@pytest.mark.parametrize("out", ["file", "file/below", "x" * 300, "shut/below"])
def test_a_place_that_cannot_be_written_is_one_sentence(
    tmp_path: Path, verb: str, out: str, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = write_synthetic_experiment(tmp_path / "ex")
    (tmp_path / "file").write_text("kept")
    (tmp_path / "shut").symlink_to(tmp_path / "nowhere" / "x")
    assert main([verb, str(directory), "--out", str(tmp_path / out)]) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: ") and said.count("\n") == 1
    assert (tmp_path / "file").read_text() == "kept"


def test_an_experiment_behind_a_symbolic_link_is_read_where_it_is(tmp_path: Path) -> None:
    """Shared disks are linked into a checkout; what is written stays in the linked directory."""
    directory = write_synthetic_experiment(tmp_path / "disk" / "ex")
    (tmp_path / "runs").symlink_to(tmp_path / "disk")

    assert main(["claims", str(tmp_path / "runs" / "ex")]) == 0
    assert len(load(tmp_path / "runs" / "ex").runs) == len(load(directory).runs) == 54


def test_a_record_behind_a_link_counts_only_in_its_place(tmp_path: Path) -> None:
    """A link to another run's directory is a copy of that run: it says so itself."""
    directory = write_synthetic_experiment(tmp_path / "ex")
    runs = sorted((directory / "full").iterdir())
    for file in runs[0].iterdir():
        file.unlink()
    runs[0].rmdir()
    runs[0].symlink_to(runs[1])

    sweep = load(directory)
    assert len(sweep.runs) == 53
    assert "record.json says run_id=" in sweep.excluded["reason"].iloc[0]


def test_the_settings_of_an_experiment_hold_no_other_path() -> None:
    """Whoever adds a field that becomes a path must check it as names are checked."""
    paths = {"name", "arms"}  # seen above
    texts = {
        f.name
        for f in dataclasses.fields(ExperimentConfig)
        if f.type in ("str", "dict[str, list[str]]")
    }
    assert texts - {"kind", "hypothesis", "decision_metric", "criterion"} == paths
