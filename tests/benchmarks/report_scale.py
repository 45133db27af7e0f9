"""``python -m tests.benchmarks.report_scale [RUNS]``: seconds and memory of a report of many runs.

Writes a synthetic experiment of 10,000 runs, unless told otherwise, each with the measurements of
150 training steps; then loads it in a fresh process without and with the cache, and reports on it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from analysis.simulate.store import rank_arms, write_experiment

RANKS = tuple(int(rank) for rank in 2 ** np.arange(9))
POINTS, REPORT_SEEDS = 20, 5
TRAINING = (
    "loss", "grad_norm", "learning_rate", "reward", "reward_std", "frac_reward_zero_std", "entropy",
    "clip_fraction", "completion_length", "clipped_ratio", "correct", "prompts_seen",
)  # fmt: skip
"""Measurements that a real run writes after every optimizer step."""
STEPS = {
    "load, no cache": "analysis.load({path!r})",
    "load, cached": "analysis.load({path!r})",
    "report": "analysis.report(analysis.load({path!r}))",
}


def main(runs: int) -> None:
    """Write the experiment and print the seconds and the peak memory of each step."""
    arms = rank_arms(RANKS, spacing=0.125, points=POINTS)
    seeds = max(1, round((runs / len(arms) - REPORT_SEEDS) / POINTS))
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "many"
        started = time.perf_counter()
        write_experiment(
            path, arms, search_seeds=seeds, report_seeds=REPORT_SEEDS, steps=150, eval_every=25
        )
        _add_training(path)
        written = len(list(path.glob("*/*/record.json")))
        print(f"{written} runs written in {time.perf_counter() - started:.0f} s")
        for name, call in STEPS.items():
            seconds, peak = _measure(call.format(path=str(path)))
            print(f"{name}: {seconds:.1f} s, peak memory {peak / 2**30:.2f} GiB")


def _add_training(path: Path) -> None:
    rng = np.random.default_rng(0)
    lines = [
        json.dumps({"step": step, **{f"train/{name}": float(rng.random()) for name in TRAINING}})
        for step in range(1, 151)
    ]
    for file in path.glob("*/*/metrics.jsonl"):
        with file.open("a", encoding="utf-8") as stream:
            stream.write("\n".join(lines) + "\n")


def _measure(call: str) -> tuple[float, float]:
    """Seconds and peak bytes of a fresh process that makes the call."""
    peak = "import resource; print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    started = time.perf_counter()
    command = [sys.executable, "-c", f"import analysis; {call}; {peak}"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    unit = 1 if sys.platform == "darwin" else 1024
    return time.perf_counter() - started, float(done.stdout.split()[-1]) * unit


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
