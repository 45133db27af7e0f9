"""Parents of sweeps by the real command line: two at once, and parents that are killed."""

from __future__ import annotations

import json
import os
import random
import subprocess
import time
from collections import Counter
from pathlib import Path

import psutil
import pytest

from tests.cluster.launches import PRETENDED, command, in_training, launch, records, wait_for
from tests.sums import TALLY

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]
MODULE = "tests.cluster.torch_free"
ARGUMENTS = (*PRETENDED, "max_retries=50")


def start(runs_dir: Path) -> subprocess.Popen[str]:
    runs_dir.mkdir(exist_ok=True)
    environ = {"ENGINE_DOUBLE_STEP_S": "0.1", "ENGINE_DOUBLE_LOG": str(runs_dir / "trained.txt")}
    with (runs_dir / "output.txt").open("a") as output:
        return subprocess.Popen(
            command(MODULE, runs_dir, *ARGUMENTS),
            stdout=output,
            stderr=output,
            text=True,
            env=os.environ | environ,
        )


def trained(runs_dir: Path) -> Counter[str]:
    return Counter((runs_dir / "trained.txt").read_text().split())


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    runs_dir = tmp_path_factory.mktemp("undisturbed")
    done = launch(MODULE, runs_dir, *ARGUMENTS)
    assert done.returncode == 0, done.stderr
    return runs_dir


def test_two_launches_at_the_same_moment_are_one_sweep(undisturbed: Path, tmp_path: Path) -> None:
    parents = [start(tmp_path), start(tmp_path)]
    codes = [parent.wait(timeout=200) for parent in parents]
    assert codes == [0, 0], (tmp_path / "output.txt").read_text()
    TALLY.injections += 1
    assert records(tmp_path) == records(undisturbed)
    assert trained(tmp_path) == dict.fromkeys(records(undisturbed), 1)
    plan = json.loads((tmp_path / "tiny" / "plan.json").read_text())
    assert plan["looks"] == 1 and len(plan["runs"]) == 6


@pytest.mark.parametrize("whole_family", [pytest.param(False, marks=pytest.mark.nightly), True])
def test_a_parent_that_is_killed(undisturbed: Path, tmp_path: Path, whole_family: bool) -> None:
    rng = random.Random(whole_family)
    for _ in range(2):
        parent = start(tmp_path)
        wait_for(lambda: in_training(tmp_path) > 0, parent)
        time.sleep(rng.uniform(0.0, 1.0))
        process = psutil.Process(parent.pid)
        victims = [process, *(process.children(recursive=True) if whole_family else [])]
        for victim in victims:
            victim.kill()
        TALLY.injections += len(victims)
        parent.wait()
    # The next launch does not wait for workers that outlived their parent.
    done = launch(MODULE, tmp_path, *ARGUMENTS)
    assert done.returncode == 0, done.stdout + done.stderr
    assert records(tmp_path) == records(undisturbed)
    assert not list(tmp_path.glob("tiny/*/*/attempts/*/result.json"))
