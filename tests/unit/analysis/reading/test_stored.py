"""A sweep rebuilt from its storage is the sweep that its directory gives."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import optuna
import pandas as pd
import pytest
from optuna.trial import TrialState
from pandas.testing import assert_frame_equal

from analysis.__main__ import main
from analysis.claims import check_claims
from analysis.reading.load import load
from analysis.reading.sweep import Sweep
from analysis.simulate.regimes import SHAPES
from analysis.simulate.store import Flaws, rank_arms, write_experiment
from study.plan.experiment import from_json
from study.records.store import ExperimentStore
from study.sweep.claims.claims import Claims
from study.sweep.claims.storage import Storage
from tests.doubles import Defects, run_id, write_synthetic_experiment
from tests.storages import open_writable, store_experiment

pytestmark = pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
DEFECTS = Defects(
    missing=[run_id("full", "search", 2e-5, 0), run_id("full", "search", 6e-5, 0)],
    diverged=[run_id("full", "search", 2e-3, 1)],
    no_signal=[run_id("lora-r1", "search", 2e-4, 2)],
    unknown_schema=[run_id("lora-r8", "search", 2e-4, 0)],
    failed_attempts={run_id("full", "search", 2e-5, 0): 3, run_id("full", "search", 2e-4, 1): 1},
)


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    yield
    optuna.logging.set_verbosity(before)


def assert_same(stored: Sweep, directory: Sweep) -> None:
    assert_frame_equal(stored.runs, directory.runs)
    assert_frame_equal(stored.planned, directory.planned)
    assert_frame_equal(stored.attempts, directory.attempts)
    assert stored.plan == directory.plan
    assert stored.selections == directory.selections
    assert (stored.complete, stored.expected) == (directory.complete, directory.expected)
    assert check_claims(stored) == check_claims(directory)


@pytest.mark.parametrize(
    ("kind", "defects"), [("sqlite:///", DEFECTS), ("journal:", DEFECTS), ("journal:", Defects())]
)
def test_a_storage_gives_the_sweep_of_its_directory(
    tmp_path: Path, kind: str, defects: Defects
) -> None:
    directory = write_synthetic_experiment(tmp_path / "ex", defects=defects)
    url = store_experiment(directory, f"{kind}{tmp_path}/storage")
    before = (tmp_path / "storage").read_bytes()

    stored, own = load(url), load(directory)
    assert_same(stored, own)
    accuracy = own.metrics[own.metrics["metric"] == "eval/accuracy"].reset_index(drop=True)
    for column in ("run_id", "step", "value", "metric"):
        assert list(stored.metrics[column]) == list(accuracy[column])
    types = [[str(dtype) for dtype in s.metrics.dtypes] for s in (stored, own)]
    assert types[0] == types[1]
    kinds = [s.excluded["kind"].value_counts().to_dict() for s in (stored, own)]
    assert kinds[0] == kinds[1]
    assert (tmp_path / "storage").read_bytes() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["ex", "storage"]


def test_verdicts_and_tables_are_those_of_the_directory(tmp_path: Path) -> None:
    """Value for value, the claim on short runs included, which reads the learning curves."""
    arms = rank_arms((1, 4, 16), truth=SHAPES["clear"])
    directory = write_experiment(tmp_path / "ex", arms, flaws=Flaws(failed=0.1, diverged=True))
    url = store_experiment(directory, f"journal:{tmp_path}/storage")

    assert main(["report", url, "--out", str(tmp_path / "elsewhere")]) == 0
    assert main(["report", str(directory)]) == 0
    for name in (
        "claims.json",
        *(f"tables/{p.name}" for p in (directory / "report/tables").iterdir()),
    ):
        ours = (directory / "report" / name).read_text()
        assert (tmp_path / "elsewhere" / name).read_text() == ours, name
    verdicts = {v["claim_id"]: v["verdict"] for v in json.loads(
        (tmp_path / "elsewhere/claims.json").read_text())}  # fmt: skip
    assert verdicts["C3"] == "supported" and "C4" in verdicts
    page = (tmp_path / "elsewhere" / "index.html").read_text()
    assert "Rebuilt from an Optuna storage" in page
    assert f"python -m analysis report journal:{tmp_path}/storage --experiment ex" in page


def test_a_report_is_written_here_unless_told_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = write_synthetic_experiment(tmp_path / "ex")
    url = store_experiment(directory, f"journal:{tmp_path}/storage")
    monkeypatch.chdir(tmp_path)

    assert main(["report", url]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "report: ex-report/index.html"
    assert main(["export", url, "--format", "csv"]) == 0
    assert len(pd.read_csv("ex-export/runs.csv")) == 54
    assert main(["claims", url]) == main(["claims", str(directory)]) == 0
    assert main(["recommend", url, "--method", "lora", "--rank", "8"]) == 0
    assert main(["compare", url, str(directory)]) == 2
    assert "hold the same 54 runs" in capsys.readouterr().err


def test_one_experiment_of_several_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = f"journal:{tmp_path}/storage"
    for name, seeds in (("one", (0, 1, 2)), ("two", (3, 4, 5))):
        store_experiment(write_synthetic_experiment(tmp_path / name, search_seeds=seeds), url)

    assert load(url, "two").name == "two"
    for arguments, said in (
        (["claims", url], "holds several experiments, name one by --experiment: one, two"),
        (["claims", url, "--experiment", "six"], "has no experiment 'six'; it has one, two"),
        (["claims", str(tmp_path / "one"), "--experiment", "one"], "1 names for 0 storages"),
        (["compare", url, url, "--experiment", "one"], "A and B are the same experiment"),
    ):
        assert main(arguments) == 2
        said_there = capsys.readouterr().err
        assert said in said_there and said_there.count("\n") == 1
    both = ["compare", url, url, "--experiment", "one", "--experiment", "two"]
    assert main(both) == 0
    assert f"A  {url} --experiment one: model lab64" in capsys.readouterr().out


def test_the_first_record_counts_where_storages_were_merged(tmp_path: Path) -> None:
    directory = write_synthetic_experiment(tmp_path / "ex")
    url = store_experiment(directory, f"journal:{tmp_path}/storage")
    storage = open_writable(url)
    study_id = storage.get_study_id_from_name("ex/full/search")
    first, second = storage.get_all_trials(study_id)[:2]
    storage.create_new_trial(study_id, template_trial=first)  # an equal one is no conflict
    second.user_attrs["record"]["score_final"] = 0.99
    storage.create_new_trial(study_id, template_trial=second)

    sweep = load(url)
    assert_same(sweep, load(directory))
    run = second.user_attrs["run_id"]
    assert sweep.excluded.to_numpy().tolist() == [
        [run, "full", "second record",
         "a record that differs from the first one of this run, which counts"]
    ]  # fmt: skip


def test_attempts_without_a_record_count_as_such(tmp_path: Path) -> None:
    gone = run_id("full", "search", 2e-5, 0)
    directory = write_synthetic_experiment(tmp_path / "ex", defects=Defects(missing=[gone]))
    url = store_experiment(directory, f"journal:{tmp_path}/storage")
    storage = open_writable(url)
    study_id = storage.get_study_id_from_name("ex/full/search")
    facts = {"run_id": gone, "seed": 0, "phase": "search"}
    for state, more in (
        (TrialState.FAIL, {"status": "oom", "status_reason": "no room", "spent": True}),
        (TrialState.FAIL, {"status": "reopened", "spent": False}),
        (TrialState.FAIL, {"status": "killed"}),
        (TrialState.RUNNING, {}),
    ):
        trial = optuna.trial.create_trial(state=TrialState.WAITING, user_attrs={**facts, **more})
        trial.state = state
        storage.create_new_trial(study_id, template_trial=trial)

    sweep = load(url)
    assert not sweep.complete
    assert sweep.planned.set_index("run_id")["status"][gone] == "missing"
    assert sweep.attempts[["attempt", "status", "reason", "spent"]].to_numpy().tolist() == [
        [3, "killed", "", False]
    ]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"plan": []}, "the plan in .* is a JSON list, not an object"),
        ({"plan": {}}, "lacks schema_version"),
        ({"selections": {"full": {"learning_rate": None}}}, "the selection of full in .* names no"),
    ],
)
def test_what_study_does_not_write_is_one_sentence(
    tmp_path: Path, change: dict[str, object], said: str
) -> None:
    directory = write_synthetic_experiment(tmp_path / "ex")
    url = store_experiment(directory, f"journal:{tmp_path}/storage")
    storage = open_writable(url)
    for key, value in change.items():
        storage.set_study_user_attr(storage.get_study_id_from_name("ex/plan"), key, value)

    with pytest.raises(ValueError, match=said):
        load(url)


def test_a_storage_of_others_holds_no_experiment(tmp_path: Path) -> None:
    url = f"journal:{tmp_path}/storage"
    optuna.create_study(study_name="theirs", storage=open_writable(url))
    with pytest.raises(ValueError, match="holds no experiment of this package; studies of others"):
        load(url)
    with pytest.raises(ValueError, match="none is not there"):
        load(f"sqlite:///{tmp_path}/none")
    assert [p.name for p in tmp_path.iterdir()] == ["storage"]


def test_a_url_that_became_a_path_is_told(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="must be given as text"):
        load(Path("postgresql://u:hunter2@h/db"))


def test_what_the_sweep_itself_writes_is_read(tmp_path: Path) -> None:
    """The code that keeps claims fills an empty storage from the records, as after its loss."""
    directory = write_experiment(tmp_path / "ex", rank_arms((8,)), report_seeds=3)
    store = ExperimentStore(directory)
    content = store.read_plan()
    assert content is not None
    plan = from_json(content)
    found = ((run.run_id, store.record(run.arm, run.run_id)) for run in plan.runs)
    records = {run_id: record for run_id, record in found if record is not None}
    claims = Claims(store, Storage(store), plan.experiment.name)
    claims.settle(plan, records)
    claims.studies.describe(plan, content, store.read_selections())

    stored, own = load(f"journal:{store.journal_path}"), load(directory)
    assert_same(stored, own)
    accuracy = own.metrics[own.metrics["metric"] == "eval/accuracy"]
    assert list(stored.metrics["value"]) == list(accuracy["value"])
