"""Which GPU and how many threads a worker has; settled before numpy, torch or CUDA load.

Three places assign them. The local launcher divides this machine among its workers; SLURM and Ray
assign what they manage; whatever the user has set in the environment stands above all.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from pathlib import Path

THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
VISIBLE = "CUDA_VISIBLE_DEVICES"
RENDEZVOUS = (
    "RANK",
    "LOCAL_RANK",
    "WORLD_SIZE",
    "LOCAL_WORLD_SIZE",
    "MASTER_ADDR",
    "MASTER_PORT",
)
"""What makes training libraries wait for other processes of one run; every run here is alone."""
DRIVER_GPUS = Path("/proc/driver/nvidia/gpus")
LISTING_TIMEOUT_S = 30.0


def available_cores() -> int:
    """Cores that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def visible_gpus(
    environ: Mapping[str, str], installed: Callable[[], list[str]] | None = None
) -> list[str]:
    """Names of the GPUs that workers may be given, as ``CUDA_VISIBLE_DEVICES`` takes them.

    Args:
        environ: An environment; if it sets ``CUDA_VISIBLE_DEVICES``, that list is the answer.
        installed: Says which GPUs the machine has; None: :func:`installed_gpus`.
    """
    chosen = environ.get(VISIBLE)
    return (installed or installed_gpus)() if chosen is None else named_gpus(chosen)


def named_gpus(chosen: str) -> list[str]:
    """The GPUs of a ``CUDA_VISIBLE_DEVICES``; as for CUDA, the list ends at ``-1`` or a gap."""
    names: list[str] = []
    for name in (part.strip() for part in chosen.split(",")):
        if name in ("", "-1"):
            break
        names.append(name)
    return names


def installed_gpus() -> list[str]:
    """The machine's GPUs, without starting CUDA, which a process that forks must not have done.

    Asks ``nvidia-smi``, else counts what the kernel's driver shows; none if there is neither.
    """
    try:
        listing = subprocess.run(
            ["nvidia-smi", "-L"],
            capture_output=True,
            text=True,
            check=True,
            timeout=LISTING_TIMEOUT_S,
        )
    except (OSError, subprocess.SubprocessError):
        count = len(list(DRIVER_GPUS.iterdir())) if DRIVER_GPUS.is_dir() else 0
        return [str(i) for i in range(count)]
    return listed_gpus(listing.stdout)


def listed_gpus(listing: str) -> list[str]:
    """GPUs in the output of ``nvidia-smi -L``; one that is partitioned counts as its partitions."""
    gpus: dict[str, list[str]] = {}
    for line in listing.splitlines():
        if gpu := re.match(r"GPU (\d+):", line):
            gpus[gpu.group(1)] = []
        elif partition := re.search(r"UUID: (MIG-[^)\s]+)", line):
            gpus[next(reversed(gpus))].append(partition.group(1))
    return [name for index, partitions in gpus.items() for name in partitions or [index]]


def worker_environment(
    index: int, workers: int, environ: Mapping[str, str], gpus: Sequence[str], cores: int
) -> dict[str, str]:
    """The environment of worker ``index`` of ``workers`` that share this machine.

    Args:
        index: From 0.
        workers: Workers on this machine.
        environ: The environment of their parent; threads that it sets stay as they are.
        gpus: Names of the GPUs that are divided; with more workers than GPUs some share one.
        cores: Cores that are divided.
    """
    environment = dict(environ)
    if gpus:
        environment[VISIBLE] = gpus[index % len(gpus)]
    _set_threads(environment, max(1, cores // workers))
    return environment


def sharing(workers: int, gpus: Sequence[str], cores: int) -> str | None:
    """A sentence if workers share a GPU or a core, for people who did not mean that; else None."""
    if 0 < len(gpus) < workers:
        return f"{workers} workers share {_count(len(gpus), 'GPU')}"
    if cores < workers:
        return f"{workers} workers share {_count(cores, 'core')}"
    return None


def settle(environ: MutableMapping[str, str], workers: int, cores: int | None = None) -> None:
    """Settle what nobody has assigned; the first thing a worker does.

    A worker sees exactly one GPU, since TRL would spread a run over all it sees, which multiplies
    its batch. Under SLURM its threads are the cores of its task.

    Args:
        environ: The worker's own environment, which is changed.
        workers: Workers that share the machine, unless SLURM started this one.
        cores: Cores that this process may run on; None: :func:`available_cores`.
    """
    cores = available_cores() if cores is None else cores
    if environ.get("SUBMITIT_EXECUTOR") == "slurm":
        threads = min(cores, int(environ.get("SLURM_CPUS_PER_TASK", cores)))
    else:
        threads = max(1, cores // workers)
    _set_threads(environ, threads)
    environ["TOKENIZERS_PARALLELISM"] = "false"
    environ[VISIBLE] = ",".join(named_gpus(environ.get(VISIBLE, "0"))[:1])
    leave_group(environ)


def leave_group(environ: MutableMapping[str, str]) -> None:
    """Forget that this process was started as one of several that train a model together.

    Args:
        environ: The environment of a process that will load training libraries.
    """
    for variable in RENDEZVOUS:
        environ.pop(variable, None)


def _set_threads(environ: MutableMapping[str, str], threads: int) -> None:
    """One number for all libraries; OMP_NUM_THREADS, where it is set, speaks for the others."""
    chosen = environ.get(THREAD_VARIABLES[0], str(threads))
    for variable in THREAD_VARIABLES:
        environ.setdefault(variable, chosen)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
