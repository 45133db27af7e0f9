"""The machine that was measured, and whether anybody else was using it."""

from __future__ import annotations

import os
from typing import Any

from study.records.provenance import provenance
from study.sweep.work.devices import THREAD_VARIABLES, settle

QUIET = 0.7
"""Load average per core up to which figures are worth quoting; one process of it is the bench."""
FACTS = ("cpu", "gpu", "python", "platform", "packages", "git_commit", "git_dirty")


def use_one_thread() -> None:
    """Let this process and its children compute in one thread; call before torch loads."""
    os.environ |= dict.fromkeys(THREAD_VARIABLES, "1")
    settle(os.environ, 1)


def machine_facts(load_at_start: float, load_at_end: float) -> dict[str, Any]:
    """What the figures depend on; keys as in :mod:`study.bench`."""
    import torch

    torch.set_num_threads(1)
    origin = provenance()
    cores = os.cpu_count() or 1
    return {
        **{name: origin[name] for name in FACTS},
        "cores": cores,
        "threads": torch.get_num_threads(),
        "load_average": {"start": load_at_start, "end": load_at_end},
        "quiet": is_quiet(load_at_start, load_at_end, cores),
    }


def is_quiet(load_at_start: float, load_at_end: float, cores: int) -> bool:
    """Whether the machine had no more to do than what is measured and a little beside it."""
    return max(load_at_start, load_at_end) <= QUIET * cores


def load_average() -> float:
    """Processes that wanted a core, over the last minute."""
    return os.getloadavg()[0]
