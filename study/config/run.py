"""Everything one run needs."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

from study.config.grpo import EntropyShaping, GrpoObjective
from study.config.laws import check_seed, require, require_one_of
from study.config.method import METHODS, MethodConfig
from study.config.objective import Objective
from study.config.probes import ProbesConfig
from study.config.sft import SftObjective
from study.config.task import TASKS, TaskConfig

OBJECTIVES: dict[str, type[Objective]] = {"grpo": GrpoObjective, "sft": SftObjective}


@dataclass(kw_only=True)
class ModelConfig:
    """The base model every arm starts from."""

    name: str
    """Label used in reports, for example ``lab64``."""
    source: str
    """``lab``: embedded model called ``name``; ``local``: the directory ``path``."""
    path: str | None = None
    """Directory written by ``save_pretrained``; only for ``source: local``."""
    dtype: str = "float32"
    """Precision of master weights and of the frozen base."""
    trust_remote_code: bool = False
    """Run Python code that the model directory brings; off unless you set it."""

    def __post_init__(self) -> None:
        require_one_of("model.source", self.source, ("lab", "local"))
        require_one_of("model.dtype", self.dtype, ("float32", "bfloat16"))
        if self.source == "local" and not self.path:
            raise ValueError("model.path must name a directory when model.source=local")
        if self.source == "lab" and self.path:
            raise ValueError(f"model.path is only read with model.source=local, got {self.path!r}")


@dataclass(kw_only=True)
class EvaluationConfig:
    """Held-out evaluation: the score of a run."""

    eval_every: int
    """Optimizer steps between evaluations; step 0 (the base) and the last step are added."""
    eval_prompts: int
    """Fixed held-out prompts, one sampled and one greedy completion each."""
    final_window: int
    """The score is the mean over this many last evaluations."""
    eval_batch_size: int
    """Prompts per generation call; part of the identity, since it orders the random draws."""

    def __post_init__(self) -> None:
        for name in ("eval_every", "eval_prompts", "final_window", "eval_batch_size"):
            value = getattr(self, name)
            require(value >= 1, f"evaluation.{name} >= 1", **{name: value})

    def steps(self, total: int) -> list[int]:
        """The optimizer steps after which a run of ``total`` steps is evaluated, 0 included."""
        return sorted({0, *range(self.eval_every, total + 1, self.eval_every), total})


@dataclass(kw_only=True)
class EngineConfig:
    """What trains the runs."""

    name: str
    """``packed``: compatible runs together in one process; ``trl``: one run per process through
    TRL's GRPOTrainer or SFTTrainer; ``auto``: packed if every arm qualifies, else trl."""
    pack_size: int | None = None
    """Most runs that a process trains at once; null: the planner's cost model decides."""

    def __post_init__(self) -> None:
        require_one_of("engine.name", self.name, ("auto", "packed", "trl"))
        if self.pack_size is not None:
            require(self.pack_size >= 1, "engine.pack_size >= 1", pack_size=self.pack_size)
            if self.name == "trl":
                raise ValueError(
                    "engine.pack_size is not read under engine=trl, which trains one run a "
                    f"process, got {self.pack_size}"
                )


@dataclass(kw_only=True)
class RunConfig:
    """Everything one run needs; its ``identity`` part decides the result."""

    model: ModelConfig
    method: MethodConfig
    task: TaskConfig
    objective: Objective
    evaluation: EvaluationConfig
    engine: EngineConfig
    seed: int
    """Seed of adapter initialisation, prompt order and sampling."""
    save: str
    """Weights kept after the run: ``none``, ``last`` or ``best`` (by sampled held-out accuracy)."""
    probes: ProbesConfig = field(default_factory=ProbesConfig)
    """What is measured of the kept weights when the run has ended."""

    def __post_init__(self) -> None:
        require_one_of("save", self.save, ("none", "last", "best"))
        check_seed("seed", self.seed)
        self._check_evaluations()
        self._check_prompts()

    def _check_evaluations(self) -> None:
        trained = len(self.evaluation.steps(self.objective.steps)) - 1
        if trained < self.evaluation.final_window:
            raise ValueError(
                f"evaluation.final_window={self.evaluation.final_window} needs as many "
                f"evaluations after step 0, but objective.steps={self.objective.steps} with "
                f"evaluation.eval_every={self.evaluation.eval_every} gives {trained}"
            )

    def _check_prompts(self) -> None:
        if self.objective.prompts_per_step > self.task.train_prompts:
            raise ValueError(
                "objective.prompts_per_step <= task.train_prompts must hold, got "
                f"{self.objective.prompts_per_step} > {self.task.train_prompts}"
            )


def objective_from_dict(data: dict[str, Any]) -> Objective:
    """The objective that :func:`dataclasses.asdict` made ``data`` of.

    Raises:
        KeyError: for an unknown name.
        TypeError: for missing or unknown keys.
        ValueError: if a law does not hold.
    """
    kind = OBJECTIVES[data["name"]]
    if kind is GrpoObjective:
        shaping = EntropyShaping(**data.get("entropy_shaping", {}))
        return GrpoObjective(**{**data, "entropy_shaping": shaping})
    return kind(**data)


def run_config_from_dict(data: dict[str, Any]) -> RunConfig:
    """Build a :class:`RunConfig` from what :func:`dataclasses.asdict` made of one.

    Raises:
        KeyError: for an unknown method, task or objective name.
        TypeError: for missing or unknown keys.
        ValueError: if a law does not hold.
    """
    return RunConfig(
        model=ModelConfig(**data["model"]),
        method=METHODS[data["method"]["name"]](**data["method"]),
        task=TASKS[data["task"]["name"]](**data["task"]),
        objective=objective_from_dict(data["objective"]),
        evaluation=EvaluationConfig(**data["evaluation"]),
        engine=EngineConfig(**data["engine"]),
        seed=data["seed"],
        save=data["save"],
        probes=ProbesConfig(**data.get("probes", {})),
    )


def with_cell(config: RunConfig, learning_rate: float, seed: int) -> RunConfig:
    """The same run at another learning rate and seed."""
    objective = dataclasses.replace(config.objective, learning_rate=learning_rate)
    return dataclasses.replace(config, objective=objective, seed=seed)
