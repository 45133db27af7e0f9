"""What a run and an experiment are made of: types, meanings and the laws between fields.

Values live in ``conf/``; this module knows neither Hydra nor OmegaConf. Every class checks itself
when it is built, so an object that exists is valid; the laws that need a described model (does a
target name exist, is the rank too large) live in :mod:`study.plan.check`.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field
from typing import Any

TARGET_PRESETS = ("all", "attention", "mlp")
ALPHA_RULES = ("constant", "2r", "sqrt")
DEFAULT_LORA_ALPHA = 32.0


def require(holds: bool, law: str, **values: object) -> None:
    """Raise ``ValueError`` naming the law and the values that broke it, unless it holds."""
    if not holds:
        got = ", ".join(f"{name}={value!r}" for name, value in values.items())
        raise ValueError(f"{law} must hold, got {got}")


def require_one_of(key: str, value: object, allowed: tuple[str, ...]) -> None:
    """Raise ``ValueError`` unless ``value`` is one of ``allowed``."""
    if value not in allowed:
        raise ValueError(f"{key} must be one of {', '.join(allowed)}, got {value!r}")


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
class MethodConfig:
    """How weights are adapted."""

    name: str
    """``full`` or ``lora``."""
    default_learning_rate: float
    """Learning rate of a run that does not set ``objective.learning_rate``."""


@dataclass(kw_only=True)
class FullMethod(MethodConfig):
    """Full fine-tuning: every parameter is trained."""


@dataclass(kw_only=True)
class LoraMethod(MethodConfig):
    """LoRA: W' = W + (lora_alpha / rank) B A on the targeted linear layers."""

    rank: int
    """Rank r of every adapter."""
    target_modules: Any = "all"
    """A preset (``all``, ``attention``, ``mlp``), a list of module names, or a regex in full."""
    alpha_rule: str = "constant"
    """``constant``: lora_alpha; ``2r``: 2 rank; ``sqrt``: lora_alpha sqrt(rank). Always alpha/r."""
    lora_alpha: float = DEFAULT_LORA_ALPHA
    """The constant in the rules ``constant`` and ``sqrt``."""

    def __post_init__(self) -> None:
        require(self.rank >= 1, "method.rank >= 1", rank=self.rank)
        require_one_of("method.alpha_rule", self.alpha_rule, ALPHA_RULES)
        require(self.lora_alpha > 0, "method.lora_alpha > 0", lora_alpha=self.lora_alpha)
        if self.alpha_rule == "2r" and self.lora_alpha != DEFAULT_LORA_ALPHA:
            raise ValueError("method.lora_alpha is not read under method.alpha_rule=2r; drop it")
        self._check_targets()

    def _check_targets(self) -> None:
        names = self.target_modules
        if isinstance(names, str):
            names = [names]
        if not isinstance(names, list) or not names or not all(isinstance(n, str) for n in names):
            raise ValueError(
                "method.target_modules must be a preset, a module name, a regex or a non-empty "
                f"list of names, got {self.target_modules!r}"
            )

    @property
    def alpha(self) -> float:
        """The alpha of alpha/r under the chosen rule."""
        if self.alpha_rule == "2r":
            return 2.0 * self.rank
        if self.alpha_rule == "sqrt":
            return self.lora_alpha * math.sqrt(self.rank)
        return self.lora_alpha


@dataclass(kw_only=True)
class TaskConfig:
    """Where prompts come from and how a completion is judged."""

    name: str
    """Which task: ``arithmetic`` or ``reasoning_gym``."""
    train_prompts: int
    """Size of the pool of training prompts."""
    max_completion_length: int
    """Longest completion, in tokens, in training and in evaluation."""

    def __post_init__(self) -> None:
        require(self.train_prompts >= 1, "task.train_prompts >= 1", got=self.train_prompts)
        require(
            self.max_completion_length >= 1,
            "task.max_completion_length >= 1",
            got=self.max_completion_length,
        )


@dataclass(kw_only=True)
class ArithmeticTaskConfig(TaskConfig):
    """Worked arithmetic, one family of the lab models' pre-training."""

    family: str = "sum3"
    """Task family, see :mod:`study.tasks.families`."""


@dataclass(kw_only=True)
class ReasoningGymTaskConfig(TaskConfig):
    """Any dataset of the ``reasoning_gym`` library."""

    dataset: str
    """Dataset name, for example ``chain_sum``."""
    params: dict[str, Any] = field(default_factory=dict)
    """Parameters of the dataset."""
    threshold: float
    """A completion is correct if its score is at least this; there is no default on purpose."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require(0 < self.threshold <= 1, "0 < task.threshold <= 1", threshold=self.threshold)


LOSS_TYPES = ("grpo", "bnpo", "dr_grpo", "dapo")
SCALE_REWARDS = ("none", "group", "batch")
SCHEDULES = ("constant", "linear", "cosine", "constant_with_warmup")


@dataclass(kw_only=True)
class GrpoObjective:
    """GRPO; every setting that defines the loss is explicit (field names are those of TRL)."""

    name: str
    """``grpo``."""
    learning_rate: float
    """Peak learning rate of AdamW; A and B share it under LoRA."""
    steps: int
    """Optimizer steps."""
    prompts_per_step: int
    """Distinct prompts per optimizer step: the batch size of the paper's curves."""
    num_generations: int
    """Completions per prompt: the group size."""
    micro_batch_size: int | None
    """Completions per forward pass; null: the whole step at once."""
    loss_type: str
    """``grpo``, ``bnpo``, ``dr_grpo`` or ``dapo``: the normaliser of the token loss."""
    scale_rewards: str
    """``none``: mean-centred advantages; ``group`` or ``batch``: divided by that SD."""
    beta: float
    """Weight of the KL penalty to the base policy."""
    epsilon: float
    """Lower clip range of the probability ratio."""
    epsilon_high: float
    """Upper clip range of the probability ratio."""
    num_iterations: int
    """Optimizer passes over one batch of completions."""
    importance_sampling_level: str
    """``token`` or ``sequence``."""
    mask_truncated_completions: bool
    """Leave completions without an end token out of the loss."""
    lr_scheduler_type: str
    """``constant``, ``linear``, ``cosine``, ``constant_with_warmup``; the horizon is ``steps``."""
    warmup_steps: int
    """Steps of linear warm-up."""
    weight_decay: float
    """AdamW weight decay."""
    adam_beta1: float
    """AdamW beta 1."""
    adam_beta2: float
    """AdamW beta 2."""
    adam_epsilon: float
    """AdamW epsilon."""
    max_grad_norm: float
    """Gradient norm clip of the run; 0 switches it off."""
    temperature: float
    """Sampling temperature, in training and in sampled evaluation."""
    no_signal_steps: int
    """A run whose first so many steps hold no group of unequal rewards ends as ``no_signal``."""

    def __post_init__(self) -> None:
        rate = self.learning_rate
        require(math.isfinite(rate) and rate > 0, "objective.learning_rate > 0", learning_rate=rate)
        for name in ("steps", "prompts_per_step", "num_iterations", "no_signal_steps"):
            value = getattr(self, name)
            require(value >= 1, f"objective.{name} >= 1", **{name: value})
        require(
            self.num_generations >= 2,
            "objective.num_generations >= 2 (a group of one has no advantage)",
            num_generations=self.num_generations,
        )
        require_one_of("objective.loss_type", self.loss_type, LOSS_TYPES)
        require_one_of("objective.scale_rewards", self.scale_rewards, SCALE_REWARDS)
        require_one_of("objective.lr_scheduler_type", self.lr_scheduler_type, SCHEDULES)
        level = self.importance_sampling_level
        require_one_of("objective.importance_sampling_level", level, ("token", "sequence"))
        for name in ("beta", "weight_decay", "warmup_steps", "max_grad_norm"):
            value = getattr(self, name)
            require(value >= 0, f"objective.{name} >= 0", **{name: value})
        for name in ("epsilon", "epsilon_high", "temperature", "adam_epsilon"):
            value = getattr(self, name)
            require(value > 0, f"objective.{name} > 0", **{name: value})
        for name in ("adam_beta1", "adam_beta2"):
            value = getattr(self, name)
            require(0 <= value < 1, f"0 <= objective.{name} < 1", **{name: value})
        self._check_batch()

    def _check_batch(self) -> None:
        rows, micro = self.completions_per_step, self.micro_batch_size
        if micro is not None and (micro < 1 or rows % micro != 0):
            raise ValueError(
                "objective.micro_batch_size must divide prompts_per_step x num_generations = "
                f"{self.prompts_per_step} x {self.num_generations} = {rows}, got {micro}"
            )

    @property
    def completions_per_step(self) -> int:
        """Completions behind one optimizer step."""
        return self.prompts_per_step * self.num_generations


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
    """``trl``: one run per process through TRL's GRPOTrainer."""

    def __post_init__(self) -> None:
        require_one_of("engine.name", self.name, ("trl",))


@dataclass(kw_only=True)
class RunConfig:
    """Everything one run needs; its ``identity`` part decides the result."""

    model: ModelConfig
    method: MethodConfig
    task: TaskConfig
    objective: GrpoObjective
    evaluation: EvaluationConfig
    engine: EngineConfig
    seed: int
    """Seed of adapter initialisation, prompt order and sampling."""
    save: str
    """Weights kept after the run: ``none``, ``last`` or ``best`` (by sampled held-out accuracy)."""

    def __post_init__(self) -> None:
        require_one_of("save", self.save, ("none", "last", "best"))
        require(self.seed >= 0, "seed >= 0", seed=self.seed)
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


RESERVED_ARM_NAMES = frozenset({"selection", "workers", "report", "best", "wandb"})
"""Folders beside the arms' folders in an experiment's directory."""


@dataclass(kw_only=True)
class SeedsConfig:
    """Seeds of the two phases; they never overlap."""

    search: list[int]
    """Seeds that choose the learning rate of each arm."""
    report: list[int]
    """Fresh seeds that give the published score."""

    def __post_init__(self) -> None:
        for phase in ("search", "report"):
            seeds = getattr(self, phase)
            if len(set(seeds)) != len(seeds):
                raise ValueError(f"experiment.seeds.{phase} must be distinct, got {seeds}")
        shared = sorted(set(self.search) & set(self.report))
        if shared:
            raise ValueError(f"search and report seeds must be disjoint, both hold {shared}")


@dataclass(kw_only=True)
class ExperimentConfig:
    """A question: arms that are compared, and the rule that answers it."""

    name: str
    """Directory below ``runs_dir``."""
    kind: str = "experiment"
    """``experiment``, ``adhoc`` (a bare multirun) or ``single`` (one run); set by the program."""
    hypothesis: str
    """What is expected, in a sentence."""
    decision_metric: str
    """The number that decides."""
    criterion: str
    """When the hypothesis counts as supported or refuted."""
    arms: dict[str, list[str]]
    """Arm name -> config overrides."""
    factors: list[str]
    """Every config key that differs between arms."""
    seeds: SeedsConfig
    extend: int = 0
    """Learning rates added on a side where some arm has its best at the edge of the grid."""
    margin: float | None = None
    """Equality margin in score; null: 10 % of FullFT's gain over the base, at least 0.02."""

    def __post_init__(self) -> None:
        require_one_of("experiment.kind", self.kind, ("experiment", "adhoc", "single"))
        require(bool(self.arms), "experiment.arms names at least one arm", arms=self.arms)
        require(len(self.seeds.search) >= 1, "experiment.seeds.search is not empty", seeds=[])
        require(self.extend >= 0, "experiment.extend >= 0", extend=self.extend)
        if self.margin is not None:
            require(self.margin > 0, "experiment.margin > 0", margin=self.margin)
        for name in (self.name, *self.arms):
            check_name(name)
        taken = sorted(set(self.arms) & RESERVED_ARM_NAMES)
        if taken:
            raise ValueError(f"an arm cannot be called {taken[0]!r}: that folder has another use")


@dataclass(kw_only=True)
class SpaceConfig:
    """The search space inside an arm."""

    learning_rate: dict[str, list[float]] = field(default_factory=dict)
    """Learning-rate grid by arm name or, failing that, by method name."""


@dataclass(kw_only=True)
class TrackerConfig:
    """Where runs are mirrored to; the run directory stays the truth."""

    name: str
    """``none`` or ``wandb``."""
    mode: str = "offline"
    """``offline`` or ``online``."""
    project: str = "lora-rl-study"
    """W&B project."""

    def __post_init__(self) -> None:
        require_one_of("tracker.name", self.name, ("none", "wandb"))
        require_one_of("tracker.mode", self.mode, ("offline", "online"))


@dataclass(kw_only=True)
class SweepConfig:
    """How a sweep is carried out; nothing here changes a result."""

    workers: int
    """Worker processes on this machine."""
    max_retries: int
    """Further tries of a run whose attempt failed."""
    retry: bool
    """Reopen runs whose retries are spent."""
    stall_timeout_s: float
    """Seconds without progress after which a child is killed."""
    dry_run: bool
    """Print the plan and its bill, then stop."""
    price_per_hour: float | None
    """Price of one worker for an hour, for the bill."""

    def __post_init__(self) -> None:
        require(self.workers >= 1, "workers >= 1", workers=self.workers)
        require(self.max_retries >= 0, "max_retries >= 0", max_retries=self.max_retries)
        require(self.stall_timeout_s > 0, "stall_timeout_s > 0", got=self.stall_timeout_s)


@dataclass(kw_only=True)
class StudyConfig(RunConfig, SweepConfig):
    """The root of ``conf/``: one run, and how a sweep around it is carried out."""

    space: SpaceConfig
    tracker: TrackerConfig
    experiment: ExperimentConfig | None = None
    """The question of a sweep; null: one run, or an ad-hoc multirun."""
    runs_dir: str
    """Parent of all experiment directories."""
    name: str | None
    """Directory of the experiment, instead of its own name."""
    worker_of: str | None
    """Experiment directory a worker process serves; set by the sweeper, never by hand."""

    def __post_init__(self) -> None:
        RunConfig.__post_init__(self)
        SweepConfig.__post_init__(self)
        if self.name is not None:
            check_name(self.name)

    def run(self) -> RunConfig:
        """The part that describes one run."""
        names = [f.name for f in dataclasses.fields(RunConfig)]
        return RunConfig(**{name: getattr(self, name) for name in names})

    def sweep(self) -> SweepConfig:
        """The part that describes how a sweep is carried out."""
        names = [f.name for f in dataclasses.fields(SweepConfig)]
        return SweepConfig(**{name: getattr(self, name) for name in names})


def check_name(name: str) -> None:
    """Refuse names that could leave the runs directory or puzzle a shell."""
    plain = all(c.isalnum() or c in "-_." for c in name)
    if not name or not plain or name.startswith("."):
        raise ValueError(
            "a name may hold letters, digits, '-', '_' and '.' and not start with '.', "
            f"got {name!r}"
        )


METHODS: dict[str, type[MethodConfig]] = {"full": FullMethod, "lora": LoraMethod}
TASKS: dict[str, type[TaskConfig]] = {
    "arithmetic": ArithmeticTaskConfig,
    "reasoning_gym": ReasoningGymTaskConfig,
}


def run_config_from_dict(data: dict[str, Any]) -> RunConfig:
    """Build a :class:`RunConfig` from what :func:`dataclasses.asdict` made of one.

    Raises:
        KeyError: for an unknown method or task name.
        TypeError: for missing or unknown keys.
        ValueError: if a law does not hold.
    """
    return RunConfig(
        model=ModelConfig(**data["model"]),
        method=METHODS[data["method"]["name"]](**data["method"]),
        task=TASKS[data["task"]["name"]](**data["task"]),
        objective=GrpoObjective(**data["objective"]),
        evaluation=EvaluationConfig(**data["evaluation"]),
        engine=EngineConfig(**data["engine"]),
        seed=data["seed"],
        save=data["save"],
    )


def with_cell(config: RunConfig, learning_rate: float, seed: int) -> RunConfig:
    """The same run at another learning rate and seed."""
    objective = dataclasses.replace(config.objective, learning_rate=learning_rate)
    return dataclasses.replace(config, objective=objective, seed=seed)
