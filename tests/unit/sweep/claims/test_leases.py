from __future__ import annotations

import os
import re
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from study.sweep.claims.leases import LEASE_S, RENEW_EVERY_S, is_fresh, new_lease


def lease(**changes: Any) -> dict[str, Any]:
    return {**new_lease(), **changes}


def test_a_lease_is_held_by_that_very_process_whatever_its_age() -> None:
    assert is_fresh(lease(expires=0))
    ours = lease()
    later = {key: ours[key] - 1000 for key in ("started", "after_boot")}
    assert not is_fresh(lease(**later))


@pytest.mark.skipif(not Path("/proc/stat").exists(), reason="Linux derives start times from it")
def test_a_clock_that_is_set_ends_no_lease(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = lease()
    (booted,) = re.findall(r"^btime (\d+)$", Path("/proc/stat").read_text(), re.MULTILINE)
    moved = Path("/proc/stat").read_text().replace(f"btime {booted}", f"btime {int(booted) + 60}")
    (tmp_path / "stat").write_text(moved)
    (tmp_path / str(os.getpid())).symlink_to("/proc/self")
    monkeypatch.setattr(psutil, "PROCFS_PATH", str(tmp_path))
    assert psutil.Process().create_time() - ours["started"] == pytest.approx(60)
    assert is_fresh(ours)


def test_a_lease_from_elsewhere_counts_by_its_age() -> None:
    assert is_fresh(lease(host="elsewhere", expires=time.time() + 1))
    assert not is_fresh(lease(host="elsewhere", expires=time.time() - 1))


@pytest.mark.parametrize("key", ["pid_namespace", "boot"])
def test_a_container_or_machine_of_the_same_host_name_is_elsewhere(key: str) -> None:
    other = lease(**{key: "another"}, pid=2**22 + 1)
    assert is_fresh(other)
    assert not is_fresh({**other, "expires": time.time() - 1})


def test_a_lease_survives_several_missed_renewals() -> None:
    assert LEASE_S >= 5 * RENEW_EVERY_S
