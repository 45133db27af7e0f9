"""What one run brought under an engine: batches, texts, metrics, evaluations, weights, its end."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from study.config import LoraMethod, RunConfig, SftObjective
from study.tasks.base import Problem, Score
from study.train.engine import Evaluation, Outcome, RunSpec
from study.train.rewards import Scorer, TaskReward
from study.train.solutions import Solutions

FREE_KEYS = ("wall_time_s", "peak_memory_bytes", "run_id")  # of an outcome: not part of the result


@dataclasses.dataclass(frozen=True)
class Batch:
    """One batch: the problem of each row and the tokens drawn for it, or of its solution."""

    problems: list[int]
    tokens: list[list[int]]


@dataclasses.dataclass
class Recording:
    """Everything one run brought."""

    spec: RunSpec
    batches: list[Batch] = dataclasses.field(default_factory=list)
    scored: list[list[str]] = dataclasses.field(default_factory=list)
    """Texts of every call of the scorer: evaluations (sampled, greedy) and batches."""
    steps: list[tuple[int, dict[str, float]]] = dataclasses.field(default_factory=list)
    evaluations: list[Evaluation] = dataclasses.field(default_factory=list)
    ends: list[Outcome | Exception] = dataclasses.field(default_factory=list)

    @property
    def config(self) -> RunConfig:
        return self.spec.config

    @property
    def outcome(self) -> Outcome:
        (end,) = self.ends
        if isinstance(end, Exception):
            raise AssertionError(f"run {self.spec.run_id} failed") from end
        return end

    def result(self) -> dict[str, Any]:
        """The outcome without what a repetition may change."""
        facts = dataclasses.asdict(self.outcome)
        return {name: value for name, value in facts.items() if name not in FREE_KEYS}

    def metrics(self) -> list[tuple[int, dict[str, float]]]:
        return [
            (step, {k: v for k, v in line.items() if not k.startswith("time/")})
            for step, line in self.steps
        ]

    def curve(self, name: str) -> list[float]:
        return [line[name] for _, line in self.steps if name in line]

    @functools.cached_property
    def weights(self) -> dict[str, torch.Tensor]:
        if isinstance(self.config.method, LoraMethod):
            return load_file(self.spec.directory / "adapter" / "adapter_model.safetensors")
        return load_file(self.spec.directory / "model" / "model.safetensors")

    @property
    def adapter_config(self) -> dict[str, Any]:
        text = (self.spec.directory / "adapter" / "adapter_config.json").read_text()
        facts: dict[str, Any] = json.loads(text)
        return facts


class RecordingSink:
    """Keeps what an engine writes, per run, and refuses what the protocol forbids."""

    def __init__(self, stops: Mapping[str, int] | None = None) -> None:
        self.runs: dict[str, Recording] = {}
        self._stops = stops or {}

    def add(self, spec: RunSpec) -> None:
        self.runs[spec.run_id] = Recording(spec)

    def _open(self, run_id: str) -> Recording:
        recording = self.runs[run_id]
        assert not recording.ends, f"{run_id} has ended, and yet it writes"
        return recording

    def log(self, run_id: str, step: int, metrics: Mapping[str, float]) -> None:
        self._open(run_id).steps.append((step, dict(metrics)))

    def evaluation(self, run_id: str, evaluation: Evaluation) -> None:
        self._open(run_id).evaluations.append(evaluation)

    def alive(self, run_id: str) -> None:
        self._open(run_id)

    def stops_early(self, run_id: str, step: int) -> str | None:
        recording = self._open(run_id)
        due = recording.config.evaluation.steps(recording.config.objective.steps)
        last = max(s for s in due if s <= step)
        assert recording.evaluations[-1].step == last, "asked before the evaluation was in"
        return f"stopped after step {step}" if step >= self._stops.get(run_id, math.inf) else None

    def ended(self, outcome: Outcome) -> None:
        self._open(outcome.run_id).ends.append(outcome)

    def failed(self, run_id: str, error: Exception) -> None:
        self._open(run_id).ends.append(error)


@contextlib.contextmanager
def recorded_rewards(sink: RecordingSink) -> Iterator[None]:
    """Records every batch and scored text. Runs build their scorers in the order they enter."""
    entered = iter(sink.runs.values())
    owner: dict[int, Recording] = {}
    kept: list[object] = []  # an id is only unique while its object lives
    enter, build, reward = Scorer.__init__, TaskReward.__init__, TaskReward.__call__
    score, learn, read = Scorer.__call__, Solutions.__init__, Solutions.read

    def entering(self: Scorer, *args: Any) -> None:
        enter(self, *args)
        owner[id(self)] = next(entered)
        kept.append(self)

    def building(self: TaskReward, scorer: Scorer, *args: Any, **kwargs: Any) -> None:
        build(self, scorer, *args, **kwargs)
        owner[id(self)] = owner[id(scorer)]
        kept.append(self)

    def learning(self: Solutions, *args: Any) -> None:
        learn(self, *args)
        owner[id(self)] = owner[id(kept[-1])]  # a run's scorer comes right before
        kept.append(self)

    def reading(self: Solutions, chosen: Sequence[int]) -> None:
        tokens = [self.completions[index] for index in chosen]
        owner[id(self)].batches.append(Batch(list(chosen), tokens))
        read(self, chosen)

    def rewarding(self: TaskReward, **columns: Any) -> list[float]:
        tokens = [list(map(int, ids)) for ids in columns["completion_ids"]]
        owner[id(self)].batches.append(Batch([int(i) for i in columns["problem"]], tokens))
        return reward(self, **columns)

    def scoring(self: Scorer, problems: Sequence[Problem], texts: Sequence[str]) -> list[Score]:
        owner[id(self)].scored.append(list(texts))
        return score(self, problems, texts)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Scorer, "__init__", entering)
        patch.setattr(Solutions, "__init__", learning)
        patch.setattr(Solutions, "read", reading)
        patch.setattr(TaskReward, "__init__", building)
        patch.setattr(TaskReward, "__call__", rewarding)
        patch.setattr(Scorer, "__call__", scoring)
        yield


def check_recording(recording: Recording) -> None:
    """Checks that the batches are those of the run: lengths as logged, one end."""
    assert len(recording.ends) == 1, f"{recording.spec.run_id} ended {len(recording.ends)} times"
    if isinstance(recording.config.objective, SftObjective):
        assert len(recording.batches) == len(recording.steps)
        return
    logged = recording.curve("train/completion_length")
    lengths = [[len(ids) for ids in batch.tokens] for batch in recording.batches]
    means = [sum(rows) / len(rows) for rows in lengths]
    assert logged == pytest.approx(means[: len(logged)], abs=1e-4)
    assert len(means) - len(logged) in (0, 1)  # one more where the run ended on its last batch
