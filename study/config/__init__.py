"""What a run and an experiment are made of: types, meanings and the laws between fields.

Values live in ``conf/``; this module knows neither Hydra nor OmegaConf. Every class checks itself
when it is built, so an object that exists is valid; the laws that need a described model (does a
target name exist, is the rank too large) live in :mod:`study.plan.description`.
"""

from study.config.ablate import AblateConfig
from study.config.experiment import (
    BudgetConfig,
    EarlyStoppingConfig,
    ExperimentConfig,
    SeedsConfig,
    SpaceConfig,
    StudyConfig,
    SweepConfig,
    TrackerConfig,
)
from study.config.grpo import EntropyShaping, GrpoObjective
from study.config.method import (
    FullMethod,
    LoraMethod,
    MethodConfig,
)
from study.config.modes import BestConfig, RefineConfig
from study.config.objective import Objective
from study.config.probes import ProbesConfig
from study.config.run import (
    EngineConfig,
    EvaluationConfig,
    ModelConfig,
    RunConfig,
    run_config_from_dict,
    with_cell,
)
from study.config.sft import SftObjective
from study.config.task import (
    ArithmeticTaskConfig,
    ReasoningGymTaskConfig,
    TaskConfig,
)

__all__ = [
    "AblateConfig",
    "ArithmeticTaskConfig",
    "BestConfig",
    "BudgetConfig",
    "EarlyStoppingConfig",
    "EngineConfig",
    "EntropyShaping",
    "EvaluationConfig",
    "ExperimentConfig",
    "FullMethod",
    "GrpoObjective",
    "LoraMethod",
    "MethodConfig",
    "ModelConfig",
    "Objective",
    "ProbesConfig",
    "ReasoningGymTaskConfig",
    "RefineConfig",
    "RunConfig",
    "SeedsConfig",
    "SftObjective",
    "SpaceConfig",
    "StudyConfig",
    "SweepConfig",
    "TaskConfig",
    "TrackerConfig",
    "run_config_from_dict",
    "with_cell",
]
