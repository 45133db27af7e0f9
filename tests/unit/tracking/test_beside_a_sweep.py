"""The mirror that a launch starts: it ends with the sweep, and the sweep never ends with it."""

from __future__ import annotations

import time
from pathlib import Path

import psutil
import pytest

from study.config import TrackerConfig
from study.sweep.launch import mirror
from study.sweep.launch.mirror import mirroring
from tests.unit.tracking.mirrors import Written, files_of, runs_of, small_sweep, stored_rows
from tests.wandb_server import KEY, wandb_server

WANDB = TrackerConfig(name="wandb")


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).resolve().parents[3]))


def mirrors_of(path: Path) -> list[psutil.Process]:
    return [p for p in psutil.process_iter(["cmdline"]) if str(path) in str(p.info["cmdline"])]


def test_what_a_sweep_leaves_is_mirrored_before_it_returns(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = small_sweep(tmp_path / "toy")
    with mirroring(store, WANDB):
        assert len(mirrors_of(store.path)) == 1
    assert mirrors_of(store.path) == [] and capsys.readouterr().err == ""
    for run in runs_of(store):
        (file,) = files_of(store, run)
        assert Written(file).rows == stored_rows(store, run)


def test_a_mirror_that_dies_leaves_the_sweep_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = small_sweep(tmp_path / "toy")
    with mirroring(store, WANDB):
        (process,) = mirrors_of(store.path)
        process.kill()
    assert capsys.readouterr().err == (
        f"W&B mirror incomplete, see {store.path}/wandb/mirror.log; again with: "
        f"python -m study.tracking {store.path} --mode offline\n"
    )


def test_a_mirror_that_cannot_start_leaves_the_sweep_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store, ran = small_sweep(tmp_path / "toy"), False
    (store.path / "wandb").write_text("in the way")
    with mirroring(store, WANDB):
        ran = True
    assert ran and capsys.readouterr().err.startswith("warning: no W&B mirror: ")


def test_a_mirror_that_hangs_is_ended_with_all_that_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    store = small_sweep(tmp_path / "toy")
    monkeypatch.setattr(mirror, "LAST_PASS_S", 15.0)
    monkeypatch.setenv("WANDB_API_KEY", KEY)

    def hang_after_probe(path: str, body: str) -> str | None:
        return "hang" if body else None

    with wandb_server(hang_after_probe) as server:
        monkeypatch.setenv("WANDB_BASE_URL", server.url)
        began = time.monotonic()
        with mirroring(store, TrackerConfig(name="wandb", mode="online")):
            pass
        assert time.monotonic() - began < 25
    until = time.monotonic() + 20
    while mirrors_of(store.path) and time.monotonic() < until:
        time.sleep(0.1)
    assert mirrors_of(store.path) == []
    assert "W&B mirror incomplete" in capsys.readouterr().err
    assert all(len(files_of(store, run)) == 1 for run in runs_of(store))  # to upload later
