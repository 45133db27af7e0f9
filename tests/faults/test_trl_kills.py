"""Deaths at random in a sweep that TRL trains: every value is that of a sweep left in peace."""

from __future__ import annotations

import json
import random
import subprocess
import time
from pathlib import Path

import psutil
import pytest

from tests.cluster.launches import TRAINED, command, launch, records
from tests.sums import TALLY

ARGUMENTS = (*TRAINED, "engine=trl", "max_retries=50")
WAIT_S = 200.0


def metrics(runs_dir: Path) -> dict[str, list[dict[str, float]]]:
    """What was logged, by run, without times."""
    found = {}
    for path in runs_dir.glob("tiny/*/*/metrics.jsonl"):
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        found[path.parent.name] = [
            {k: v for k, v in row.items() if not k.startswith("time/")} for row in rows
        ]
    return found


def evaluations(runs_dir: Path) -> dict[str, bytes]:
    paths = runs_dir.glob("tiny/*/*/evaluations.parquet")
    return {path.parent.name: path.read_bytes() for path in paths}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    runs_dir = tmp_path_factory.mktemp("undisturbed")
    done = launch("study", runs_dir, *ARGUMENTS)
    assert done.returncode == 0, done.stderr
    return runs_dir


def strike(parent: subprocess.Popen[bytes], runs_dir: Path, rng: random.Random) -> bool:
    """Kill a random one of the family once runs are being trained; False if all is done."""
    deadline = time.monotonic() + WAIT_S
    while not list(runs_dir.glob("tiny/workers/[!.]*.json")):
        if parent.poll() is not None:
            return False
        assert time.monotonic() < deadline
        time.sleep(0.05)
    time.sleep(rng.uniform(0.0, 6.0))
    if parent.poll() is not None:
        return False
    relatives = psutil.Process(parent.pid).children(recursive=True)
    if relatives:
        rng.choice(relatives).kill()
        TALLY.injections += 1
    return bool(relatives)


@pytest.mark.nightly
@pytest.mark.integration
@pytest.mark.timeout(1500)
def test_ten_deaths_at_random(undisturbed: Path, tmp_path: Path) -> None:
    rng, struck, launches = random.Random(0), 0, 0
    expected = records(undisturbed)
    runs_dir = tmp_path / "0"
    while struck < 10:
        if records(runs_dir) == expected:  # done early: the next sweep takes the rest
            runs_dir = tmp_path / str(launches)
        runs_dir.mkdir(exist_ok=True)
        launches += 1
        with (runs_dir / "output.txt").open("ab") as output:
            parent = subprocess.Popen(
                command("study", runs_dir, *ARGUMENTS), stdout=output, stderr=output
            )
        struck += strike(parent, runs_dir, rng)
        struck += struck < 10 and strike(parent, runs_dir, rng)
        parent.wait(timeout=WAIT_S)
        assert expected.items() >= records(runs_dir).items()
    for directory in sorted(tmp_path.iterdir()):
        done = launch("study", directory, *ARGUMENTS)
        assert done.returncode == 0, done.stdout + done.stderr
        assert records(directory) == expected
        assert metrics(directory) == metrics(undisturbed)
        assert evaluations(directory) == evaluations(undisturbed)
    TALLY.launches += launches
