"""What an experiment asks, and how a sweep is carried out."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field

from study.config.ablate import AblateConfig
from study.config.laws import check_name, check_seed, require, require_one_of
from study.config.modes import BestConfig, RefineConfig
from study.config.run import RunConfig

RESERVED_ARM_NAMES = frozenset({"selection", "workers", "report", "export", "best", "wandb"})
"""Folders beside the arms' folders in an experiment's directory."""
EXCLUDED_BY_MODE = {
    "ablate": ("extend", "early_stopping", "refine", "best"),
    "refine": ("early_stopping", "best"),
    "best": ("extend", "margin"),
}
"""Search mode -> settings of an experiment that it has no use for, other modes included."""


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
            for seed in seeds:
                check_seed(f"each of experiment.seeds.{phase}", seed)
        shared = sorted(set(self.search) & set(self.report))
        if shared:
            raise ValueError(f"search and report seeds must be disjoint, both hold {shared}")


@dataclass(kw_only=True)
class EarlyStoppingConfig:
    """Successive halving over the learning rates of each arm, in the search phase alone.

    A rung lies at ``grace_steps``, twice that, four times that, and so on. At each, the learning
    rates of an arm are ranked by held-out accuracy, mean over search seeds, and the last ones are
    stopped with all their seeds; stopped runs are censored, never scored.
    """

    grace_steps: int
    """No run is stopped before this optimizer step: the first rung."""
    keep: float
    """Share of an arm's learning rates that goes on at each rung, rounded up. Above 0.5 two rates
    always reach the end, so that one which collapses late has a neighbour left."""
    window: int
    """The accuracy at a rung is the mean over this many last evaluations (fewer, if fewer were
    made; the untrained model's never counts)."""

    def __post_init__(self) -> None:
        where = "experiment.early_stopping"
        require(self.grace_steps >= 1, f"{where}.grace_steps >= 1", grace_steps=self.grace_steps)
        require(0 < self.keep < 1, f"0 < {where}.keep < 1", keep=self.keep)
        require(self.window >= 1, f"{where}.window >= 1", window=self.window)

    def places(self, rates: int) -> int:
        """How many of ``rates`` learning rates go on after a rung, at least 1."""
        return math.ceil(round(self.keep * rates, 9))  # 0.28 x 25 is 7, whatever floats say


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
    arms: dict[str, list[str]] = field(default_factory=dict)
    """Arm name -> config overrides."""
    factors: list[str] = field(default_factory=list)
    """Every config key that differs between arms."""
    seeds: SeedsConfig
    extend: int = 0
    """Learning rates added on a side where some arm has its best at the edge of the grid."""
    margin: float | None = None
    """Equality margin in score; null: 10 % of FullFT's gain over the base, at least 0.02."""
    early_stopping: EarlyStoppingConfig | None = None
    """Stop poor learning rates early; null: every run trains to its end. Only in an experiment's
    file, since curves, ratios and verdicts are never estimated from a search that was cut short."""
    ablate: AblateConfig | None = None
    """Change one factor at a time between two arms; null: the arms are compared as they stand."""
    refine: RefineConfig | None = None
    """Search on around each arm's best grid rate; null: the grid is the search."""
    best: BestConfig | None = None
    """Search settings and learning rates jointly; null: every arm is searched on its own."""

    def __post_init__(self) -> None:
        require_one_of("experiment.kind", self.kind, ("experiment", "adhoc", "single"))
        made = self.best is not None and bool(self.best.choices)
        require(made or bool(self.arms), "experiment.arms names at least one arm", arms=self.arms)
        require(len(self.seeds.search) >= 1, "experiment.seeds.search is not empty", seeds=[])
        require(self.extend >= 0, "experiment.extend >= 0", extend=self.extend)
        if self.margin is not None:
            require(self.margin > 0, "experiment.margin > 0", margin=self.margin)
            if self.early_stopping is not None:
                raise ValueError(
                    "experiment.margin is not read with experiment.early_stopping, under which no "
                    f"claim is decided, got {self.margin}"
                )
        for name in (self.name, *self.arms):
            check_name(name)
        taken = sorted(set(self.arms) & RESERVED_ARM_NAMES)
        if taken:
            raise ValueError(f"an arm cannot be called {taken[0]!r}: that folder has another use")
        if self.ablate is not None:
            self.ablate.check(self.arms, self.factors)
        self._check_mode()

    def _check_mode(self) -> None:
        """Refuse two search modes, or a setting that a mode would not read."""
        if self.best is not None and not self.seeds.report:
            raise ValueError(
                "experiment.best needs experiment.seeds.report: the best score of a search is "
                "optimistic, fresh seeds tell what the setting is worth"
            )
        for mode in (mode for mode in EXCLUDED_BY_MODE if getattr(self, mode) is not None):
            for key in EXCLUDED_BY_MODE[mode]:
                if getattr(self, key):
                    raise ValueError(
                        f"experiment.{key} cannot be combined with experiment.{mode}, got "
                        f"{getattr(self, key)!r}"
                    )


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
class BudgetConfig:
    """What a sweep may spend: runs under way finish, none is begun beyond. Null: no limit."""

    runs: int | None = None
    """Results that the experiment may hold in all, those of earlier launches included."""
    hours: float | None = None
    """A worker begins no run after so many hours of its own life."""
    flops: float | None = None
    """FLOPs of training and rollouts that the experiment's results may take in all. A run that
    could overshoot is not begun."""

    def __post_init__(self) -> None:
        for key in ("runs", "hours", "flops"):
            limit = getattr(self, key)
            require(limit is None or 0 < limit < math.inf, f"budget.{key} > 0", **{key: limit})


@dataclass(kw_only=True)
class SweepConfig:
    """How a sweep is carried out; nothing here changes a result."""

    workers: int
    """Worker processes, which the launcher starts."""
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
    budget: BudgetConfig
    """What the sweep may spend."""

    def __post_init__(self) -> None:
        require(self.workers >= 1, "workers >= 1", workers=self.workers)
        require(self.max_retries >= 0, "max_retries >= 0", max_retries=self.max_retries)
        require(self.stall_timeout_s > 0, "stall_timeout_s > 0", got=self.stall_timeout_s)
        price = self.price_per_hour
        require(price is None or price >= 0, "price_per_hour >= 0", price_per_hour=price)


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
    storage: str | None
    """Optuna storage of claims: ``sqlite:///FILE`` (one worker) or ``postgresql://...``, with no
    password in it; null: a journal in the experiment's directory."""
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
