"""Leases: which process holds a run, and whether it still lives."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import psutil

LEASE_S = 180.0
"""A lease from another machine counts as stale so long after its last renewal."""
RENEW_EVERY_S = 20.0
WATCHED_S = 2 * RENEW_EVERY_S
"""A lease from another machine that ran out is watched so long before its holder counts as dead: a
storage that was away let nobody renew, and clocks differ."""


def new_lease() -> dict[str, Any]:
    """A lease of this process from now on."""
    return {**_holder(), "expires": time.time() + LEASE_S}


SAME_START_S = 1.5
"""Start times of one process differ by less, the system's being rounded to seconds."""

Lives = Callable[[int, float, float], bool]
"""Whether the process with a pid lives that started then, so long after the boot."""


def process_lives(pid: int, started: float, after_boot: float) -> bool:
    """Whether that very process lives; pids are reused, so its start counts too.

    On Linux its time moves whenever somebody sets the clock (a virtual machine that was paused
    does), its distance from the boot does not; elsewhere it may be the other way round.
    """
    try:
        process = psutil.Process(pid)
        now_started, now_after = _start(process)
        same = min(abs(now_started - started), abs(now_after - after_boot)) < SAME_START_S
        return same and process.status() != "zombie"
    except psutil.NoSuchProcess:
        return False


def _start(process: psutil.Process) -> tuple[float, float]:
    """When a process started, by the clock and in seconds after the boot."""
    started = process.create_time()
    return started, started - psutil.boot_time()


def is_fresh(lease: Mapping[str, Any], lives: Lives = process_lives) -> bool:
    """Whether the process that took the lease still lives; by its age if on another machine."""
    if is_elsewhere(lease):
        return time.time() < float(lease["expires"])
    return lives(int(lease["pid"]), float(lease["started"]), float(lease["after_boot"]))


def is_elsewhere(lease: Mapping[str, Any]) -> bool:
    """Whether its holder is on another machine, or one whose pids say nothing here."""
    ours = _holder()
    return any(lease.get(key) != ours[key] for key in ("host", "boot", "pid_namespace"))


class Suspects:
    """Leases of other machines that ran out, by trial, and since when they were seen so."""

    def __init__(self) -> None:
        self._seen: dict[int, tuple[float, float]] = {}

    def is_dead(self, trial_id: int, lease: Mapping[str, Any], back_at: float) -> bool:
        """Whether nobody has renewed a lease that ran out, though there was time to do so.

        Args:
            trial_id: The trial that has the lease.
            lease: The lease.
            back_at: When the storage came back from its last outage, by ``time.monotonic()``.
        """
        expires, now = float(lease["expires"]), time.monotonic()
        if self._seen.get(trial_id, (None, now))[0] != expires:
            self._seen[trial_id] = expires, now
        return now - max(self._seen[trial_id][1], back_at) >= WATCHED_S


def _holder() -> dict[str, Any]:
    return _holder_of(os.getpid())


@cache
def _holder_of(pid: int) -> dict[str, Any]:
    started, after_boot = _start(psutil.Process(pid))
    return {
        "host": socket.gethostname(),
        "boot": _boot(),
        "pid_namespace": _pid_namespace(),
        "pid": pid,
        "started": started,
        "after_boot": after_boot,
    }


def _boot() -> str:
    """Machines may share a name ("localhost", cloned images) too; empty where Linux is not."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def _pid_namespace() -> str:
    """Containers may share a host's name, but not each other's pids; empty where there are none."""
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""
