"""Leases: which process holds a run, and whether it still lives."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import psutil

LEASE_S = 180.0
"""A lease from another machine counts as stale so long after its last renewal."""
RENEW_EVERY_S = 20.0


def new_lease() -> dict[str, Any]:
    """A lease of this process from now on."""
    return {**_holder(), "expires": time.time() + LEASE_S}


def process_lives(pid: int, started: float) -> bool:
    """Whether that very process lives; pids are reused, so its start time counts too."""
    try:
        process = psutil.Process(pid)
        return abs(process.create_time() - started) < 1.0 and process.status() != "zombie"
    except psutil.NoSuchProcess:
        return False


def is_fresh(lease: Mapping[str, Any], lives: Callable[[int, float], bool] = process_lives) -> bool:
    """Whether the process that took the lease still lives; by its age if on another machine."""
    ours = _holder()
    if any(lease.get(key) != ours[key] for key in ("host", "pid_namespace")):
        return time.time() < float(lease["expires"])
    return lives(int(lease["pid"]), float(lease["started"]))


def _holder() -> dict[str, Any]:
    return _holder_of(os.getpid())


@cache
def _holder_of(pid: int) -> dict[str, Any]:
    return {
        "host": socket.gethostname(),
        "pid_namespace": _pid_namespace(),
        "pid": pid,
        "started": psutil.Process(pid).create_time(),
    }


def _pid_namespace() -> str:
    """Containers may share a host's name, but not each other's pids; empty where there are none."""
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""
