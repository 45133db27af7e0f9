"""A torch-free engine: a known score for every run, and faults on request.

Score of a run: 0.2 + 0.5 exp(-(log10(lr) - log10(best))^2 / 0.3) with best = 2e-4 (full) or
2e-3 (LoRA), minus seed / 1e4 so that seeds differ; learning rates of 0.05 and more diverge.
Faults by seed: 13 raises, 14 leaves without a result, 15 hangs, 16 raises MemoryError.
ENGINE_DOUBLE_STEP_S makes each of the steps last so long; ENGINE_DOUBLE_LOG names a file to which
each finished training appends its run id, so that a run trained twice shows.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Sequence

from study.config import RunConfig
from study.train.engine import Evaluation, NextRun, Outcome, RunSpec, Sink

BEST = {"full": 2e-4, "lora": 2e-3}


def true_score(config: RunConfig) -> float:
    """The score this engine gives a run."""
    rate = config.objective.learning_rate
    if rate >= 0.05:
        return 0.0
    distance = math.log10(rate / BEST[config.method.name])
    return 0.2 + 0.5 * math.exp(-(distance**2) / 0.3) - config.seed / 1e4


def train(runs: Sequence[RunSpec], sink: Sink, next_run: NextRun) -> list[Outcome]:
    """Pretend to train each run."""
    return [_train(spec, sink) for spec in runs]


def _train(spec: RunSpec, sink: Sink) -> Outcome:
    config = spec.config
    _fault(config.seed)
    for step in range(1, config.objective.steps + 1):
        time.sleep(float(os.environ.get("ENGINE_DOUBLE_STEP_S", "0")))
        sink.log(spec.run_id, step, {"train/loss": math.nan if step == 1 else 0.5})
    score = true_score(config)
    right = [i < round(score * 1000) for i in range(1000)]
    sink.evaluation(
        spec.run_id,
        Evaluation(
            step=config.objective.steps,
            prompt_ids=[f"p{i}" for i in range(1000)],
            completions=["x"] * 1000,
            correct=right,
            tokens=[1] * 1000,
            greedy_correct=right,
            mean_reward=score,
        ),
    )
    if log := os.environ.get("ENGINE_DOUBLE_LOG"):
        with open(log, "a") as file:
            file.write(spec.run_id + "\n")
    diverged = config.objective.learning_rate >= 0.05
    return Outcome(
        run_id=spec.run_id,
        status="diverged" if diverged else "completed",
        status_reason="double",
        score_final=score,
        score_best=score,
        score_base=0.2,
        score_greedy=score,
        steps_done=config.objective.steps,
        episodes=1,
        train_tokens=100,
        generated_tokens=50,
        wall_time_s=0.01,
        peak_memory_bytes=1,
        dtypes={"base": "float32", "adapter": "float32", "optimizer": "float32"},
    )


def _fault(seed: int) -> None:
    if seed == 13:
        raise RuntimeError("seed 13 always fails")
    if seed == 14:
        os._exit(7)
    if seed == 15:
        time.sleep(3600)
    if seed == 16:
        raise MemoryError("seed 16 wants too much")
