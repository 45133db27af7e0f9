"""A disk without room: one sentence, nothing published is lost, no run is blamed."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.harness import PATIENCE_S, Sweep
from tests.faults.injections import Fault, fill
from tests.sums import TALLY

ENGINES = ["packed", pytest.param("trl", marks=pytest.mark.nightly)]
POINTS = (
    "before claim",
    "before the attempt",
    "child starts",
    "after metrics",
    "before an evaluation",
    "before the result",
    "before publish",
    "between record and tell",
    "before a selection",
    "before the plan grows",
)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Where a sweep of this test keeps its experiment: a disk of two megabytes."""
    place = tmp_path / "toy"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(place)]
    if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("a small disk takes the right to mount one")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def assert_nobody_is_blamed(sweep: Sweep) -> None:
    for path in sweep.store.path.glob("*/*/attempts.jsonl"):
        tries = [json.loads(line) for line in path.read_text().splitlines()]
        assert not any(attempt["spent"] for attempt in tries), tries


@pytest.mark.timeout(300)
@pytest.mark.parametrize("engine", ENGINES)
def test_a_disk_that_fills_at_any_point(
    tmp_path: Path, small_disk: Path, monkeypatch: pytest.MonkeyPatch, engine: str
) -> None:
    ballast = small_disk / "ballast"
    monkeypatch.setenv("FAULT_BALLAST", str(ballast))
    sweep = Sweep(tmp_path, engine)
    for point in POINTS:
        (worker,) = sweep.launch([Fault(point, action="fill the disk")])
        code = worker.wait(timeout=PATIENCE_S)
        assert ballast.exists(), f"{point} was never reached"
        TALLY.injections += 1
        ballast.unlink()
        assert code == 0 or "is full; free some space" in sweep.output().splitlines()[-1], point
        sweep.check_so_far()
        assert_nobody_is_blamed(sweep)
    sweep.finish()
    assert not list(sweep.store.path.rglob(".*.json.*"))


@pytest.mark.nightly
@pytest.mark.timeout(300)
def test_a_disk_that_fills_at_any_moment(tmp_path: Path, small_disk: Path) -> None:
    sweep = Sweep(tmp_path, seeds=6)
    for _ in range(4):
        (worker,) = sweep.launch(step_s=0.05)
        time.sleep(sweep.rng.uniform(1.0, 3.0))
        fill(small_disk / "ballast")
        TALLY.injections += 1
        worker.wait(timeout=PATIENCE_S)
        (small_disk / "ballast").unlink()
        sweep.check_so_far()
        assert_nobody_is_blamed(sweep)
    sweep.finish()
