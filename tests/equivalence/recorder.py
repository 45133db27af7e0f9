"""Runs both engines and records everything they bring."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from study.config import (
    ArithmeticTaskConfig,
    EvaluationConfig,
    FullMethod,
    LoraMethod,
    ModelConfig,
    RunConfig,
)
from study.plan.description import Description
from study.tasks.arithmetic import ArithmeticTask
from study.train import packed, trl
from study.train.describe import describe
from study.train.engine import RunSpec
from tests import plans
from tests.equivalence.recording import Recording, RecordingSink, check_recording, recorded_rewards
from tests.integration.train_runs import run_spec


def run(
    method: str = "lora",
    *,
    rank: int = 4,
    alpha: float = 32.0,
    targets: Any = "all",
    model: str | Path = "lab64",
    train_prompts: int = 64,
    length: int = 14,
    eval_every: int | None = None,
    eval_prompts: int = 8,
    eval_batch_size: int = 8,
    seed: int = 0,
    save: str = "last",
    **objective: Any,
) -> RunConfig:
    """A run that keeps its last weights; by default three steps of 4 x 4 completions.

    What is not a parameter here is a setting of the objective.
    """
    chosen = {
        "full": FullMethod(name="full", default_learning_rate=1e-3),
        "lora": LoraMethod(
            name="lora",
            default_learning_rate=5e-3,
            rank=rank,
            lora_alpha=alpha,
            target_modules=targets,
        ),
    }[method]
    settings = plans.objective(
        **{
            "learning_rate": chosen.default_learning_rate,
            "num_generations": 4,
            "no_signal_steps": 50,
            **objective,
        }
    )
    local = {"source": "local", "path": str(model)} if isinstance(model, Path) else {}
    return plans.run_config(
        chosen,
        model=ModelConfig(**{"name": Path(model).name, "source": "lab", **local}),
        task=ArithmeticTaskConfig(
            name="arithmetic", train_prompts=train_prompts, max_completion_length=length
        ),
        objective=settings,
        evaluation=EvaluationConfig(
            eval_every=eval_every or settings.steps,
            eval_prompts=eval_prompts,
            final_window=1,
            eval_batch_size=eval_batch_size,
        ),
        seed=seed,
        save=save,
    )


def _description(config: RunConfig) -> Description:
    data = (config.task, config.evaluation.eval_prompts, config.objective.name)
    key = repr((config.model, *data, _tasks()))
    if key not in _DESCRIPTIONS:
        _DESCRIPTIONS[key] = describe(config)
    return _DESCRIPTIONS[key]


def spec_of(config: RunConfig, run_id: str, directory: Path) -> RunSpec:
    directory.mkdir(parents=True)
    return run_spec(config, directory, run_id, _description(config))


def _tasks() -> tuple[str, str]:
    return ArithmeticTask.score.__qualname__, ArithmeticTask.problems.__qualname__


def specs_of(configs: Sequence[RunConfig]) -> list[RunSpec]:
    root = Path(tempfile.mkdtemp(prefix="equivalence-", dir=_root()))
    return [spec_of(c, f"run-{i}", root / f"run-{i}") for i, c in enumerate(configs)]


@functools.cache
def _root() -> Path:
    root = tempfile.TemporaryDirectory(prefix="equivalence-")
    _KEPT.append(root)  # removed with the process
    return Path(root.name)


_KEPT: list[Any] = []
_DESCRIPTIONS: dict[str, Description] = {}
_TRL: dict[tuple[str, ...], Recording] = {}


def run_trl(config: RunConfig) -> Recording:
    """One run through TRL; the same run again is not repeated."""
    key = (repr(config), *_tasks())
    if key not in _TRL:
        _TRL[key] = train_trl(config)
    return _TRL[key]


def train_trl(config: RunConfig, *, stops: Mapping[str, int] | None = None) -> Recording:
    """One run through TRL, called ``run-0``."""
    (spec,) = specs_of([config])
    sink = RecordingSink(stops)
    sink.add(spec)
    with recorded_rewards(sink):
        trl.train([spec], sink, lambda: None)
    (recording,) = sink.runs.values()
    check_recording(recording)
    return recording


def run_packed(
    configs: Sequence[RunConfig],
    refills: Sequence[RunConfig] = (),
    *,
    stops: Mapping[str, int] | None = None,
) -> list[Recording]:
    """Runs in one pack; ``refills`` enter, in order, as the engine asks for another run.

    The runs are called ``run-0``, ``run-1``, ...; ``stops`` names steps after which the sink ends
    them early.
    """
    specs = specs_of([*configs, *refills])
    return train_packed(specs[: len(configs)], specs[len(configs) :], stops=stops)


def train_packed(
    specs: Sequence[RunSpec],
    refills: Sequence[RunSpec] = (),
    *,
    stops: Mapping[str, int] | None = None,
) -> list[Recording]:
    sink = RecordingSink(stops)
    for spec in [*specs, *refills]:
        sink.add(spec)
    waiting = iter(refills)
    with recorded_rewards(sink):
        packed.train(specs, sink, lambda: next(waiting, None))
    assert next(waiting, None) is None, "the engine left runs in the queue"
    recordings = list(sink.runs.values())
    for recording in recordings:
        check_recording(recording)
    return recordings
