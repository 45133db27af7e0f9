"""Short real runs on the lab model, for the tests of the training engine."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from study.config import (
    ArithmeticTaskConfig,
    EvaluationConfig,
    FullMethod,
    LoraMethod,
    MethodConfig,
    ModelConfig,
    RunConfig,
)
from study.plan.description import Description, resolve_targets, trainable_params
from study.train import trl
from study.train.describe import describe
from study.train.engine import Evaluation, Outcome, RunSpec
from tests import plans

METHODS: dict[str, MethodConfig] = {
    "full": FullMethod(name="full", default_learning_rate=2e-4),
    "lora": LoraMethod(name="lora", default_learning_rate=2e-3, rank=4),
}


def run_config(
    method: str = "lora", *, seed: int = 0, save: str = "none", **changes: Any
) -> RunConfig:
    """A run of three steps of 4 x 4 completions; `changes` go where their key belongs."""
    chosen = METHODS[method]
    evaluation = {"eval_every": 3, "eval_prompts": 32, "final_window": 1, "eval_batch_size": 32}
    evaluation |= {key: changes.pop(key) for key in list(changes) if key in evaluation}
    model = ModelConfig(name="lab64", source="lab", dtype=changes.pop("dtype", "float32"))
    settings = {
        "learning_rate": chosen.default_learning_rate,
        "num_generations": 4,
        "no_signal_steps": 20,
        **changes,
    }
    return plans.run_config(
        chosen,
        model=model,
        task=ArithmeticTaskConfig(name="arithmetic", train_prompts=64, max_completion_length=14),
        objective=plans.objective(**settings),
        evaluation=EvaluationConfig(**evaluation),
        seed=seed,
        save=save,
    )


@dataclasses.dataclass
class Stream:
    """What an engine wrote of one run."""

    logs: list[tuple[int, dict[str, float]]] = dataclasses.field(default_factory=list)
    evaluations: list[Evaluation] = dataclasses.field(default_factory=list)
    signs_of_life: int = 0

    def curve(self, name: str) -> list[float]:
        return [metrics[name] for _, metrics in self.logs if name in metrics]

    def without_times(self) -> list[tuple[int, dict[str, float]]]:
        return [
            (step, {k: v for k, v in metrics.items() if not k.startswith("time/")})
            for step, metrics in self.logs
        ]


@dataclasses.dataclass
class ListSink:
    """Keeps what an engine writes, run by run; stops a run early after the steps of `stops`."""

    runs: dict[str, Stream] = dataclasses.field(default_factory=lambda: defaultdict(Stream))
    outcomes: dict[str, Outcome] = dataclasses.field(default_factory=dict)
    errors: dict[str, Exception] = dataclasses.field(default_factory=dict)
    stops: dict[str, int] = dataclasses.field(default_factory=dict)
    asked: list[tuple[str, int]] = dataclasses.field(default_factory=list)

    def log(self, run_id: str, step: int, metrics: Mapping[str, float]) -> None:
        self.runs[run_id].logs.append((step, dict(metrics)))

    def alive(self, run_id: str) -> None:
        self.runs[run_id].signs_of_life += 1

    def evaluation(self, run_id: str, evaluation: Evaluation) -> None:
        self.runs[run_id].evaluations.append(evaluation)

    def stops_early(self, run_id: str, step: int) -> str | None:
        self.asked.append((run_id, step))
        return "told so" if self.stops.get(run_id) == step else None

    def ended(self, outcome: Outcome) -> None:
        assert outcome.run_id not in self.outcomes
        self.outcomes[outcome.run_id] = outcome

    def failed(self, run_id: str, error: Exception) -> None:
        self.errors[run_id] = error


def run_spec(
    config: RunConfig, directory: Path, run_id: str = "run", model: Description | None = None
) -> RunSpec:
    model = model or describe(config)
    targets = resolve_targets(config.method, model)
    return RunSpec(
        run_id=run_id,
        config=config,
        model=model,
        target_modules=targets,
        trainable_params=trainable_params(config.method, targets, model),
        eval_role="eval",
        directory=directory,
    )


def train(
    config: RunConfig, directory: Path, sink: ListSink | None = None
) -> tuple[Outcome, Stream]:
    sink = sink or ListSink()
    trl.train([run_spec(config, directory)], sink, lambda: None)
    return sink.outcomes["run"], sink.runs["run"]
