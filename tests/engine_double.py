"""A torch-free engine: a known score for every run, and faults on request.

It trains one run under ``engine.name=trl``, and under ``packed`` any number in lockstep, a step of
each in turn, asking for the next run where one has ended. A record's ``probes`` say in which
process (``pid``) and beside how many others (``lanes``, itself included) a run ended, and how many
runs its process had started before it (``place``).

Score of a run: 0.2 + 0.5 exp(-(log10(lr) - log10(best))^2 / 0.3) with best = 2e-4 (full) or
2e-3 (LoRA), minus seed / 1e4 so that seeds differ; learning rates of 0.05 and more diverge. Every
evaluation measures this score.

Faults by seed: 13 raises (packed: only that run fails), 14 leaves without a result, 15 hangs, 16
raises MemoryError, 17 kills its process some rounds after runs that began with it have ended.
ENGINE_DOUBLE_STEP_S makes each of the steps last so long; ENGINE_DOUBLE_LOG names a file to which
each finished training appends its run id, so that a run trained twice shows.
"""

from __future__ import annotations

import math
import os
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from study.config import RunConfig
from study.plan.flops import Sequences, forward_flops, train_flops
from study.train.engine import Evaluation, NextRun, Outcome, RunSpec, Sink
from study.train.score import run_scores

BEST = {"full": 2e-4, "lora": 2e-3}
ONE_EPISODE = Sequences(tokens=100)
KILLER = 17
KILLED_AT = 5
"""Round at which the killer strikes: neighbours of three steps have ended by then, and runs that
took their places are at their second step."""


def true_score(config: RunConfig) -> float:
    """The score this engine gives a run."""
    rate = config.objective.learning_rate
    if rate >= 0.05:
        return 0.0
    distance = math.log10(rate / BEST[config.method.name])
    return 0.2 + 0.5 * math.exp(-(distance**2) / 0.3) - config.seed / 1e4


@dataclass
class Training:
    """A run under way."""

    spec: RunSpec
    place: int
    step: int = 0
    rounds: int = 0


def train(runs: Sequence[RunSpec], sink: Sink, next_run: NextRun) -> None:
    """Pretend to train the runs and, if they are packed, whatever refills them."""
    packed = runs[0].config.engine.name == "packed"
    assert packed or len(runs) == 1
    lanes = [Training(spec, place) for place, spec in enumerate(runs)]
    begun = len(lanes)
    while lanes:
        time.sleep(float(os.environ.get("ENGINE_DOUBLE_STEP_S", "0")))
        for lane in list(lanes):
            if _has_ended(lane, lanes, sink):
                lanes.remove(lane)
                while packed and (spec := next_run()) is not None:
                    lanes.append(Training(spec, begun))
                    begun += 1


def _has_ended(lane: Training, lanes: list[Training], sink: Sink) -> bool:
    spec, objective = lane.spec, lane.spec.config.objective
    lane.rounds += 1
    try:
        _fault(lane)
    except RuntimeError as error:
        if spec.config.engine.name == "trl":
            raise
        sink.failed(spec.run_id, error)
        return True
    lane.step += 1
    loss = math.nan if lane.step == 1 else 0.5
    sink.log(spec.run_id, lane.step, {"train/loss": loss})
    reason = _evaluate(lane, sink)
    if lane.step < objective.steps and reason is None:
        return False
    if log := os.environ.get("ENGINE_DOUBLE_LOG"):
        with open(log, "a") as file:
            file.write(spec.run_id + "\n")
    sink.ended(_outcome(lane, len(lanes), reason))
    return True


def _evaluate(lane: Training, sink: Sink) -> str | None:
    """Evaluate if it is time to; why the run ends early, if it does."""
    spec, steps = lane.spec, lane.spec.config.objective.steps
    if lane.step not in spec.config.evaluation.steps(steps):
        return None
    score = true_score(spec.config)
    right = [i < round(score * 1000) for i in range(1000)]
    evaluation = Evaluation(
        step=lane.step,
        prompt_ids=[f"p{i}" for i in range(1000)],
        completions=["x"] * 1000,
        correct=right,
        tokens=[1] * 1000,
        greedy_correct=right,
        mean_reward=score,
        work=Sequences(),
    )
    sink.evaluation(spec.run_id, evaluation)
    return sink.stops_early(spec.run_id, lane.step) if lane.step < steps else None


def _outcome(lane: Training, lanes: int, reason: str | None) -> Outcome:
    spec, config, score = lane.spec, lane.spec.config, true_score(lane.spec.config)
    status = "diverged" if config.objective.learning_rate >= 0.05 else "completed"
    measured: dict[str, Any] = {"score_final": score, "score_best": score, "score_greedy": score}
    if reason is not None:
        status = "pruned"
        pruned = run_scores(status, [], 1)
        measured |= {"score_final": pruned.final, "score_greedy": pruned.greedy}
    return Outcome(
        run_id=spec.run_id,
        status=status,
        status_reason=reason or "double",
        **measured,
        score_base=0.2,
        steps_done=lane.step,
        episodes=1,
        train_tokens=100,
        generated_tokens=50,
        train_flops=train_flops(config.method, spec.target_modules, spec.model, ONE_EPISODE),
        rollout_flops=forward_flops(spec.model, ONE_EPISODE),
        wall_time_s=0.01,
        peak_memory_bytes=1,
        dtypes={"base": "float32", "adapter": "float32", "optimizer": "float32"},
        probes={"pid": os.getpid(), "lanes": lanes, "place": lane.place},
    )


def _fault(lane: Training) -> None:
    seed = lane.spec.config.seed
    if seed == 13:
        raise RuntimeError("seed 13 always fails")
    if seed == 14:
        os._exit(7)
    if seed == 15:
        time.sleep(3600)
    if seed == 16:
        raise MemoryError("seed 16 wants too much")
    if seed == KILLER:
        lane.step = 0  # it gets nowhere, and its neighbours pass it
        if lane.rounds == KILLED_AT:
            os.kill(os.getpid(), signal.SIGKILL)
