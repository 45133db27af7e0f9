"""``python -m study.bench``: seconds per step and per evaluation of the engine on this machine.

LoRA and full fine-tuning are timed in turns, so that a machine that slows down slows both; quote
the ratios, not the absolute times.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from study.cli import reporting_user_errors
from study.compose import compose
from study.config import RunConfig
from study.records.store import write_json
from study.sweep.assemble import describe_all, make_arm
from study.train.engine import Evaluation, RunSpec

ARMS = {
    "full": ["method=full"],
    "lora-r1": ["method=lora", "method.rank=1"],
    "lora-r8": ["method=lora", "method.rank=8"],
}


class Stopwatch:
    """A sink that notes when steps and evaluations end."""

    def __init__(self) -> None:
        self.step_s: list[float] = []
        self.evaluation_s: list[float] = []
        self._last: float | None = None

    def log(self, run_id: str, step: int, metrics: Mapping[str, float]) -> None:
        """Note a step."""
        self._lap(self.step_s)

    def evaluation(self, run_id: str, evaluation: Evaluation) -> None:
        """Note an evaluation."""
        self._lap(self.evaluation_s)

    def alive(self, run_id: str) -> None:
        """Nobody waits."""

    def _lap(self, laps: list[float]) -> None:
        now = time.perf_counter()
        if self._last is not None:
            laps.append(now - self._last)
        self._last = now


def measure(configs: dict[str, RunConfig], rounds: int) -> dict[str, dict[str, Any]]:
    """Median seconds of a step, an evaluation and the start of a run, by arm."""
    from study.train.trl import train  # ten seconds of import that --help need not pay

    descriptions = describe_all(list(configs.values()))
    laps: dict[str, list[Stopwatch]] = {name: [] for name in configs}
    starts: dict[str, list[float]] = {name: [] for name in configs}
    for _ in range(rounds):
        for (name, config), description in zip(configs.items(), descriptions, strict=True):
            arm = make_arm(name, config, [], [config.objective.learning_rate], description)
            watch = Stopwatch()
            with tempfile.TemporaryDirectory() as directory:
                spec = RunSpec(
                    run_id=name,
                    config=config,
                    model=arm.model,
                    target_modules=arm.target_modules,
                    trainable_params=arm.trainable_params,
                    eval_role="eval",
                    directory=Path(directory),
                )
                begin = time.perf_counter()
                (outcome,) = train([spec], watch, lambda: None)
                spent = time.perf_counter() - begin
            assert outcome.status == "completed", outcome.status_reason
            starts[name].append(spent - sum(watch.step_s) - sum(watch.evaluation_s))
            laps[name].append(watch)
    return {
        name: {
            "step_s": statistics.median(x for watch in laps[name] for x in watch.step_s),
            "evaluation_s": statistics.median(x for w in laps[name] for x in w.evaluation_s),
            "start_s": statistics.median(starts[name]),
        }
        for name in configs
    }


def print_table(console: Console, results: dict[str, dict[str, Any]]) -> None:
    """The measurement as a table, with each arm's step relative to the first."""
    table = Table(title="engine trl")
    for heading in ("arm", "step", "evaluation", "start and first evaluation", "step / full"):
        table.add_column(heading, justify="left" if heading == "arm" else "right")
    first = next(iter(results.values()))["step_s"]
    for name, row in results.items():
        times = [f"{row[key] * 1e3:.0f} ms" for key in ("step_s", "evaluation_s", "start_s")]
        table.add_row(name, *times, f"{row['step_s'] / first:.2f}")
    console.print(table)


def main(arguments: list[str] | None = None) -> None:
    """Time each arm for some steps and print the medians."""
    parser = argparse.ArgumentParser(prog="python -m study.bench", description=__doc__)
    parser.add_argument("overrides", nargs="*", help="for example model=lab128")
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    options = parser.parse_args(arguments)
    sizes = [f"objective.steps={options.steps}", "evaluation.eval_every=10", "save=none"]
    with reporting_user_errors():
        configs = {
            name: compose([*sizes, *options.overrides, *overrides]).run()
            for name, overrides in ARMS.items()
        }
        results = measure(configs, options.rounds)
    print_table(Console(), results)
    if options.json:
        write_json(options.json, results)


if __name__ == "__main__":
    main()
