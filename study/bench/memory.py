"""Peak memory of one packed run and of a pack, each in a process of its own."""

from __future__ import annotations

import importlib
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from rich.console import Console

from study.bench.cases import Case
from study.bench.steps import Effort, run, specs_of
from study.sweep.work.child import ENGINES

LANES = 32
STATE_BYTES = 4 * 4
"""Bytes of a trained parameter in fp32: itself, its gradient and Adam's two moments."""


def measure_memory(effort: Effort, console: Console) -> dict[str, Any]:
    """Peaks of one run and of a pack of 32, and their ratio; see :mod:`study.bench`.

    Raises:
        RuntimeError: if a run fails or does not complete.
    """
    with console.status("memory: one run"):
        imported, one, params = _in_a_process(1, effort)
    with console.status(f"memory: {LANES} runs"):
        _, pack, _ = _in_a_process(LANES, effort)
    return memory_summary(imported, one, pack, LANES * params * STATE_BYTES)


def memory_summary(imported: int, one: int, pack: int, states: int) -> dict[str, Any]:
    """The measurement as it goes into the JSON file; all arguments are bytes."""
    return {
        "lanes": LANES,
        "imported_bytes": imported,
        "one_run_bytes": one,
        "pack_bytes": pack,
        "states_bytes": states,
        "ratio": (pack - states) / one,
    }


def _in_a_process(lanes: int, effort: Effort) -> tuple[int, int, int]:
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(peaks, lanes, effort).result()


def peaks(lanes: int, effort: Effort) -> tuple[int, int, int]:
    """Peak bytes of this process after its imports and after training a pack; parameters of a run.

    Call it in a fresh process.
    """
    case = Case(model="lab64", rows=64, method="lora", reward="parity", lanes=lanes)
    importlib.import_module(ENGINES["packed"])
    imported = peak_bytes()
    with specs_of(case, effort) as specs:
        run("packed", specs, effort.warm_up)
    return imported, peak_bytes(), specs[0].trainable_params


def peak_bytes() -> int:
    """Most memory this process has held, in bytes: GPU memory if it uses a GPU.

    Linux keeps the peak of a process across ``exec``, so what a spawned child is told of itself
    includes its parent; the kernel's own count of the address space does not.
    """
    import torch

    from study.train.tally import peak_memory  # loads torch, which --help need not wait for

    status = Path("/proc/self/status")
    if torch.cuda.is_available() or not status.exists():
        return peak_memory()
    (line,) = [x for x in status.read_text().splitlines() if x.startswith("VmHWM:")]
    return int(line.split()[1]) * 1024
