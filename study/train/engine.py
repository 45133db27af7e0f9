"""The engine protocol: runs go in, everything that they bring goes to the sink.

``train(runs, sink, next_run)`` is called in a child process. Each run ends in one call of the sink:
``ended`` for a result, a diverged run among them, or ``failed`` for a failed attempt. What the
engine raises fails every run that has not ended by then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from study.config import RunConfig
from study.plan.description import Description
from study.plan.flops import Sequences
from study.tasks.base import Role


@dataclass(frozen=True, kw_only=True)
class RunSpec:
    """One run as an engine sees it."""

    run_id: str
    config: RunConfig
    model: Description
    target_modules: list[str]
    """Full names of the adapted layers; empty under full fine-tuning."""
    trainable_params: int
    """What the method must train by the closed form; checked before step 0."""
    eval_role: str
    """Split that is evaluated: ``eval`` in the search phase, ``report`` in the report phase."""
    directory: Path
    """The attempt's directory; weights are saved below it."""

    @property
    def held_out_role(self) -> Role:
        """The role of the problems that the run is evaluated on."""
        return "report" if self.eval_role == "report" else "eval"


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """One held-out evaluation: a sampled and a greedy completion for each fixed prompt."""

    step: int
    prompt_ids: list[str]
    completions: list[str]
    """Sampled at training temperature."""
    correct: list[bool]
    tokens: list[int]
    """Length of each sampled completion, end token included."""
    greedy_correct: list[bool]
    mean_reward: float
    """Mean reward of the sampled completions."""
    work: Sequences
    """Prompts and completions as they were drawn, the greedy ones included."""

    @property
    def accuracy(self) -> float:
        """Share of sampled completions that are correct."""
        return sum(self.correct) / len(self.correct)

    @property
    def greedy_accuracy(self) -> float:
        """Share of greedy completions that are correct."""
        return sum(self.greedy_correct) / len(self.greedy_correct)


class Sink(Protocol):
    """Where an engine writes; every call counts as progress of the run."""

    def log(self, run_id: str, step: int, metrics: Mapping[str, float]) -> None:
        """Append one line of metrics, keys ``family/name``."""

    def evaluation(self, run_id: str, evaluation: Evaluation) -> None:
        """Append one evaluation, its metrics and a few of its completions."""

    def alive(self, run_id: str) -> None:
        """Say that the run makes progress, where nothing is written for long."""

    def stops_early(self, run_id: str, step: int) -> str | None:
        """Ask whether early stopping ends the run: at an evaluation, once it and those of the other
        runs of the pack are in, and now and then between evaluations.

        Returns:
            The reason, or None if the run goes on.
        """

    def ended(self, outcome: Outcome) -> None:
        """The run has a result; its weights, if kept, are on disk. Nothing more is written."""

    def failed(self, run_id: str, error: Exception) -> None:
        """The attempt at this run failed; the engine goes on with the others."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What an engine measured of a run that ended with a result."""

    run_id: str
    status: str
    status_reason: str
    flags: list[str] = field(default_factory=list)
    score_final: float | None
    score_best: float | None
    score_base: float | None
    score_greedy: float | None
    steps_done: int
    episodes: int
    train_tokens: int
    generated_tokens: int
    train_flops: float
    rollout_flops: float
    wall_time_s: float
    """Seconds; in a pack, the run's own part of the time, by its rows."""
    peak_memory_bytes: int
    """Of the process, the other runs of a pack included."""
    dtypes: dict[str, str]
    probes: dict[str, Any] = field(default_factory=dict)


NextRun = Callable[[], RunSpec | None]
"""Asks the worker for another run that may share a process with the others (see
:func:`study.plan.packs.pack_key`); None when there is none now."""


class Engine(Protocol):
    """Trains runs to their outcomes."""

    def __call__(self, runs: Sequence[RunSpec], sink: Sink, next_run: NextRun) -> None:
        """Train ``runs`` and what ``next_run`` adds; see the module."""
