"""Real Optuna storages of others: SQLite and journal."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import optuna
import pytest
from optuna.distributions import FloatDistribution
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import TrialState, create_trial

from analysis.__main__ import main
from analysis.reading.load import load
from analysis.reading.sources import SourceOptions, read_source
from tests.doubles import write_synthetic_experiment
from tests.storages import store_experiment
from tests.unit.analysis.reading.foreign import reasons

LR = {"lr": FloatDistribution(1e-6, 1.0, log=True)}
pytestmark = pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")


def storage_url(path: Path, kind: str) -> str:
    return f"sqlite:///{path}" if kind == "sqlite" else f"journal:{path}"


def fill(url: str, name: str, direction: str = "maximize") -> None:
    """A study of four trials: two that ended at 0.5 and 0.7, a failed one and a pruned one."""
    path = url.partition(":")[2].removeprefix("///")
    storage = url if url.startswith("sqlite") else JournalStorage(JournalFileBackend(path))
    optuna_study = optuna.create_study(study_name=name, storage=storage, direction=direction)
    for rate, value, state in ((1e-4, 0.5, TrialState.COMPLETE), (1e-3, 0.7, TrialState.COMPLETE),
                               (1e-2, None, TrialState.FAIL), (1e-1, 0.1, TrialState.PRUNED),
                               ):  # fmt: skip
        steps = {0: 0.1, 10: value} if value else {}
        optuna_study.add_trial(
            create_trial(
                state=state,
                value=value,
                params={"lr": rate},
                distributions=LR,
                user_attrs={"rank": 8},
                intermediate_values=steps,
            )
        )


@pytest.mark.parametrize("kind", ["sqlite", "journal"])
def test_a_study_of_others(tmp_path: Path, kind: str) -> None:
    url, out = storage_url(tmp_path / "storage", kind), tmp_path / "out"
    fill(url, "theirs", "minimize")
    before = (tmp_path / "storage").read_bytes()
    column_map = "learning_rate=params_lr,lora_rank=user_attrs_rank"
    code = main(["import", url, "--map", column_map, "--history-map", "eval/loss=value",
                 "--out", str(out)])  # fmt: skip
    sweep = load(out)

    assert code == 0 and (tmp_path / "storage").read_bytes() == before
    assert list(sweep.runs["run_id"]) == ["theirs-0", "theirs-1", "theirs-3"]
    assert list(sweep.runs["status"]) == ["completed", "completed", "pruned"]
    assert list(sweep.runs["score_final"])[:2] == [0.5, 0.7]
    assert (sweep.direction, set(sweep.runs["arm"])) == ("minimize", {"lora-r8"})
    assert reasons(sweep)["theirs-2"] == (
        "unfinished",
        "status 'fail' (learning rate 1e-2, seed 0)",
    )
    mine = sweep.metrics[sweep.metrics["run_id"] == "theirs-1"]
    assert list(mine.itertuples(index=False, name=None)) == [
        ("theirs-1", 0, "eval/loss", 0.1),
        ("theirs-1", 10, "eval/loss", 0.7),
    ]
    assert set(sweep.runs["score_base"]) == {0.1}


def test_one_of_several_studies(tmp_path: Path) -> None:
    url = storage_url(tmp_path / "storage", "sqlite")
    fill(url, "full")
    fill(url, "lora-r4-attention")

    raw = read_source(url, SourceOptions())
    assert list(raw.runs["study_name"]) == ["full"] * 4 + ["lora-r4-attention"] * 4
    assert len(read_source(url, SourceOptions(study_name="full")).runs) == 4
    with pytest.raises(ValueError, match="has no study 'half'; it has full, lora-r4-attention"):
        read_source(url, SourceOptions(study_name="half"))


def test_our_own_storage_needs_no_import(tmp_path: Path) -> None:
    directory = write_synthetic_experiment(tmp_path / "ours")
    url = store_experiment(directory, storage_url(tmp_path / "journal", "journal"))

    with pytest.raises(ValueError, match=r"holds experiments of this package \(ours\): they need"):
        read_source(url, SourceOptions())
    assert len(read_source(url, SourceOptions(study_name="ours/full/search")).runs) == 15


@pytest.mark.parametrize("kind", ["sqlite", "journal"])
def test_a_study_without_trials(tmp_path: Path, kind: str) -> None:
    url = storage_url(tmp_path / "storage", kind)
    path = tmp_path / "storage"
    storage = url if kind == "sqlite" else JournalStorage(JournalFileBackend(str(path)))
    optuna.create_study(study_name="empty", storage=storage)

    with pytest.raises(ValueError, match="holds no trial"):
        read_source(url, SourceOptions())
    with pytest.raises(ValueError, match="holds no trial of empty"):
        read_source(url, SourceOptions(study_name="empty"))


def test_several_objectives_are_no_score(tmp_path: Path) -> None:
    url = storage_url(tmp_path / "storage", "sqlite")
    optuna.create_study(study_name="two", storage=url, directions=["maximize", "minimize"])

    with pytest.raises(ValueError, match="study 'two' has several objectives"):
        read_source(url, SourceOptions())


def test_reading_writes_nothing(tmp_path: Path) -> None:
    """Optuna would make a missing file, and its tables in a foreign one."""
    with closing(sqlite3.connect(tmp_path / "foreign.db")) as database:
        database.execute("CREATE TABLE runs (a TEXT)")
        database.commit()
    (tmp_path / "text").write_text("not a journal\nnor is this\n")
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    for url, said in (
        (f"sqlite:///{tmp_path}/none.db", "none.db is not there"),
        (f"journal:{tmp_path}/none", "none is not there"),
        (f"sqlite:///{tmp_path}/foreign.db", "is no Optuna storage: import a table of it as"),
        (f"sqlite:///{tmp_path}/text", "is not a SQLite file that can be read"),
        (f"journal:{tmp_path}/text", "cannot be read as an Optuna storage"),
    ):
        with pytest.raises(ValueError, match=said):
            read_source(url, SourceOptions())
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


def test_an_optuna_file_without_its_url_is_told_apart(tmp_path: Path) -> None:
    fill(storage_url(tmp_path / "study.db", "sqlite"), "full")
    with pytest.raises(ValueError, match="is an Optuna storage: import it as sqlite:///"):
        read_source(str(tmp_path / "study.db"), SourceOptions())


def test_a_journal_that_was_cut_short_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    url = storage_url(tmp_path / "journal", "journal")
    fill(url, "full")
    with (tmp_path / "journal").open("a") as file:
        file.write('{"op_code": 4, "worker')

    assert len(read_source(url, SourceOptions()).runs) == 4


def test_a_database_that_cannot_be_reached_keeps_its_password_to_itself(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = "postgresql+psycopg://me:secret@localhost:1/none"
    assert main(["import", url, "--out", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    assert "postgresql+psycopg://me@localhost:1/none cannot be read" in said
    assert "secret" not in said
