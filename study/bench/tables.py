"""The measurements as tables for the terminal."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

Rows = Sequence[Mapping[str, Any]]


def print_part(name: str, found: Any, console: Console) -> None:
    """Print one part of the results: ``steps``, ``scaling``, ``memory`` or ``sweep``."""
    tables: dict[str, Callable[[Any], Table]] = {
        "steps": steps,
        "scaling": scaling,
        "memory": memory,
        "sweep": sweep,
    }
    console.print(tables[name](found))
    if name == "steps":
        console.print(shares(found))


def steps(found: Rows) -> Table:
    """Run-steps of both engines."""
    table = _table(
        "Run-step: median over rounds (smallest to largest)",
        ["case", "reward"],
        ["unequal", "lanes", "trl", "packed", "trl / packed", "in busy time"],
    )
    for case in found:
        times = [_ms(_median(case, engine, "step_s")) for engine in ("trl", "packed")]
        table.add_row(
            _case(case),
            case["reward"],
            _percent(_median(case, "packed", "unequal_share")),
            str(case["lanes"]),
            *times,
            times_with_spread(case["ratio"]),
            times_with_spread(case["busy_ratio"]),
        )
    return table


def shares(found: Rows) -> Table:
    """Evaluations of both engines, and how near their run-steps come to the arithmetic floor."""
    table = _table(
        "Evaluation of a run; arithmetic floor as a share of the run-step, in busy time",
        ["case", "reward"],
        ["trl", "packed", "trl / packed", "GFLOP/s", "floor", "of packed", "of trl"],
    )
    for case in found:
        evaluations = [_ms(_median(case, engine, "evaluation_s")) for engine in ("trl", "packed")]
        table.add_row(
            _case(case),
            case["reward"],
            *evaluations,
            times_with_spread(case["evaluation_ratio"]),
            f"{case['gemm_flops']['median'] / 1e9:.0f}",
            _ms(statistics.median(one["floor_s"] for one in case["rounds"])),
            _percent(case["floor_share"]["median"]),
            _percent(case["trl_floor_share"]["median"]),
        )
    return table


def _case(case: Mapping[str, Any]) -> str:
    return f"{case['hidden_size']} x {case['layers']}, {case['rows']} rows, {case['method']}"


def scaling(found: Rows) -> Table:
    """Run-steps of packs of growing size."""
    headings = ["lanes", "run-step", "one lane / this", "in busy time"]
    table = _table("Packed LoRA runs of lab64: run-step by lanes", ["rows"], headings)
    for row in found:
        table.add_row(
            str(row["rows"]),
            str(row["lanes"]),
            _ms(row["step_s"]["median"]),
            times_with_spread(row["speedup"]),
            times_with_spread(row["busy_speedup"]),
        )
    return table


def memory(found: Mapping[str, Any]) -> Table:
    """Peaks of processes, and the rule they are held to."""
    table = _table("Peak memory of a process, packed LoRA runs of lab64", ["what"], ["MB"])
    for label, key in (
        ("libraries alone", "imported_bytes"),
        ("one run", "one_run_bytes"),
        (f"{found['lanes']} runs", "pack_bytes"),
        (f"adapters, gradients, moments of {found['lanes']}", "states_bytes"),
    ):
        table.add_row(label, f"{found[key] / 1e6:.0f}")
    table.add_row(f"({found['lanes']} runs - states) / one run", f"{found['ratio']:.2f}")
    return table


def sweep(found: Rows) -> Table:
    """Whole sweeps under both engines."""
    table = _table(
        "A sweep from the command line, seconds",
        ["sweep"],
        ["trl", "packed", "trl / packed", "training alone", "trl / packed", "equal scores"],
    )
    for row in found:
        training = [f"{row[engine]['training_s']:.0f}" for engine in ("trl", "packed")]
        table.add_row(
            f"{row['runs']} runs of {row['steps']} steps, {row['evaluations']} evaluations, "
            f"{row['rows']} rows, {row['workers']} workers",
            f"{row['trl']['wall_s']:.0f}",
            f"{row['packed']['wall_s']:.0f}",
            f"{row['ratio']:.1f}x",
            " / ".join(training),
            f"{row['training_ratio']:.1f}x",
            f"{row['equal_scores']} of {row['runs']}",
        )
    return table


def print_machine(facts: Mapping[str, Any], console: Console) -> None:
    """Print what the figures depend on, and a warning if they are not worth quoting."""
    load = facts["load_average"]
    console.print(
        f"{facts['cpu']}, {facts['cores']} cores, {facts['gpu'] or 'no GPU'}, torch "
        f"{facts['packages']['torch']}, {facts['threads']} thread, load average "
        f"{load['start']:.1f} at the start and {load['end']:.1f} at the end"
    )
    if not facts["quiet"]:
        console.print("warning: the machine was busy with something else; quote no figure")


def times_with_spread(value: Mapping[str, float]) -> str:
    """A spread of ratios: ``6.1x (5.8 to 6.4)``."""
    return f"{value['median']:.1f}x ({value['low']:.1f} to {value['high']:.1f})"


def _median(case: Mapping[str, Any], engine: str, key: str) -> float:
    return float(statistics.median(one[engine][key] for one in case["rounds"]))


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.1f} ms"


def _percent(share: float) -> str:
    return f"{share:.0%}"


def _table(title: str, texts: list[str], numbers: list[str]) -> Table:
    table = Table(title=title, title_justify="left")
    for heading in texts:
        table.add_column(heading)
    for heading in numbers:
        table.add_column(heading, justify="right")
    return table
