"""Badges: one file for each worker, of whatever container, and none for the dead."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from study.records.files import write_json
from study.records.store import ExperimentStore
from study.sweep.claims.leases import new_lease
from study.sweep.work.badge import Badge, badges, describe_badge
from tests.unit.sweep.workers import ROOT


def row(**changes: Any) -> dict[str, Any]:
    facts = {"arm": "full", "learning_rate": 1e-3, "seed": 2, "step": 5, "steps": 150}
    return {**facts, "accuracy": None, **changes}


def test_badges_are_read_by_people() -> None:
    assert describe_badge({"runs": []}) == "waiting for a run"
    assert describe_badge({"runs": [row()]}) == "full lr=0.001 seed=2 step 5/150"
    assert describe_badge({"runs": [row(accuracy=0.25)]}).endswith("step 5/150 accuracy 0.250")
    pack = [row(), row(arm="lora", step=25, accuracy=0.5), row(arm="lora")]
    expected = "3 runs at step 5-25/150, best accuracy 0.500 (1 full, 2 lora)"
    assert describe_badge({"runs": pack}) == expected
    assert describe_badge({"runs": [row(), row(steps=9)]}) == "2 runs at step 5/9-150 (2 full)"


SHOW = """
import sys
from pathlib import Path
from study.records.store import ExperimentStore
from study.sweep.work.badge import Badge
Badge(ExperimentStore(Path(sys.argv[1]))).show([])
"""
IN_A_PID_NAMESPACE = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc"]


def separates_pids() -> bool:
    if shutil.which(IN_A_PID_NAMESPACE[0]) is None:
        return False
    return subprocess.run([*IN_A_PID_NAMESPACE, "true"], capture_output=True).returncode == 0


@pytest.mark.skipif(not separates_pids(), reason="no pid namespaces to be had here")
def test_containers_with_one_host_name_and_one_pid_have_a_badge_each(tmp_path: Path) -> None:
    show = [*IN_A_PID_NAMESPACE, sys.executable, "-c", SHOW, str(tmp_path)]
    for _ in range(2):
        subprocess.run(show, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=True)
    shown = badges(ExperimentStore(tmp_path))  # another namespace's: alive by their age
    assert [badge["pid"] for badge in shown] == [1, 1]
    assert len({badge["host"] for badge in shown}) == 1
    assert len({badge["started"] for badge in shown}) == 2


def test_a_worker_that_shows_up_removes_what_dead_ones_left(tmp_path: Path) -> None:
    store = ExperimentStore(tmp_path)

    def leave(name: str, **lease: Any) -> Path:
        write_json(store.workers_dir / name, {**new_lease(), **lease, "runs": []})
        return store.workers_dir / name

    kept = [
        leave("living.json"),
        leave("elsewhere.json", host="elsewhere", expires=time.time() + 60),
    ]
    leave("killed.json", started=1.0, after_boot=1.0)
    leave("silent.json", host="elsewhere", expires=time.time() - 1)
    (store.workers_dir / "spoilt.json").write_text("")
    (store.workers_dir / "torn.json").write_text('{"host":')
    assert len(badges(store)) == 2
    assert len(list(store.workers_dir.iterdir())) == 6  # who only looks removes nothing
    badge = Badge(store)
    assert sorted(store.workers_dir.iterdir()) == sorted(kept)
    badge.show([])
    (own,) = set(store.workers_dir.iterdir()) - set(kept)
    assert json.loads(own.read_text())["pid"] == os.getpid()
    badge.remove()
    assert sorted(store.workers_dir.iterdir()) == sorted(kept)
