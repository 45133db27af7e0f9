from __future__ import annotations

import os
import re
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from study.sweep.claims import leases
from study.sweep.claims.leases import (
    LEASE_S,
    RENEW_EVERY_S,
    WATCHED_S,
    Suspects,
    is_elsewhere,
    is_fresh,
    new_lease,
)


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


class Clock:
    """Time as a test sets it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        monkeypatch.setattr(leases.time, "monotonic", lambda: self.now)

    def after(self, seconds: float) -> None:
        self.now += seconds


def test_a_lease_that_ran_out_elsewhere_is_watched_before_its_holder_counts_as_dead(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock, suspects, silent = Clock(monkeypatch), Suspects(), lease(host="elsewhere", expires=5.0)
    assert is_elsewhere(silent) and not is_elsewhere(lease())
    assert not suspects.is_dead(1, silent, -1e9)
    clock.after(WATCHED_S - 1)
    assert not suspects.is_dead(1, silent, -1e9)
    assert not suspects.is_dead(2, silent, -1e9)  # seen now for the first time
    clock.after(1)
    assert suspects.is_dead(1, silent, -1e9)
    assert not suspects.is_dead(2, silent, -1e9)


def test_a_holder_whose_clock_is_behind_lives_while_it_renews(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock, suspects = Clock(monkeypatch), Suspects()
    for expires in range(20):
        assert not suspects.is_dead(1, lease(expires=float(expires)), -1e9)
        clock.after(RENEW_EVERY_S)


def test_a_storage_that_was_away_for_all_gives_them_time_to_renew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock, suspects, silent = Clock(monkeypatch), Suspects(), lease(expires=5.0)
    assert not suspects.is_dead(1, silent, -1e9)
    clock.after(300.0)  # nobody could write; it is back now
    back_at = clock.now
    assert not suspects.is_dead(1, silent, back_at)
    clock.after(WATCHED_S)
    assert suspects.is_dead(1, silent, back_at)
