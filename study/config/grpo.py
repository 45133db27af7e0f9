"""What a run optimises by reinforcement learning."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from study.config.laws import require, require_one_of
from study.config.objective import Objective

LOSS_TYPES = ("grpo", "bnpo", "dr_grpo", "dapo", "cispo", "sapo", "vespo", "luspo")
LEVEL_OF_LOSS = {"luspo": "sequence", "vespo": "token"}
"""Losses that are defined for one ``importance_sampling_level`` alone."""
SCALE_REWARDS = ("none", "group", "batch")


@dataclass(kw_only=True)
class EntropyShaping:
    """Advantages shaped by entropy: A' = A + min(alpha H, |A| / kappa) at a token of entropy H.

    Cheng et al. 2025, "Reasoning with Exploration: An Entropy Perspective" (arXiv:2506.14758), who
    take alpha = 0.4 under GRPO, and kappa = 2.
    """

    alpha: float = 0.0
    """Weight of a token's entropy, per nat; 0: a completion's tokens share one advantage."""
    kappa: float = 2.0
    """The term is at most |A| / kappa; above 1, so that no advantage changes its sign."""

    def __post_init__(self) -> None:
        where = "objective.entropy_shaping"
        require(0 <= self.alpha < math.inf, f"0 <= {where}.alpha < inf", alpha=self.alpha)
        require(
            1 < self.kappa < math.inf,
            f"1 < {where}.kappa < inf (a smaller one turns the sign of advantages)",
            kappa=self.kappa,
        )

    @property
    def is_on(self) -> bool:
        """Whether it changes any advantage."""
        return self.alpha > 0


@dataclass(kw_only=True)
class GrpoObjective(Objective):
    """GRPO; every setting that defines the loss is explicit (field names are those of TRL)."""

    num_generations: int
    """Completions per prompt: the group size."""
    loss_type: str
    """``grpo``, ``bnpo``, ``dr_grpo`` or ``dapo``: the normaliser of the clipped token loss;
    ``cispo``, ``sapo``, ``vespo`` or ``luspo``: another bound on the probability ratio in place of
    the clip. While each batch serves one step the ratio is 1, and the gradients of dapo, cispo and
    vespo are one, as are those of grpo and sapo, and up to a constant of dr_grpo and luspo."""
    scale_rewards: str
    """``none``: mean-centred advantages; ``group`` or ``batch``: divided by that SD."""
    beta: float
    """Weight of the KL penalty to the base policy."""
    epsilon: float
    """Lower clip range of the probability ratio; not read by cispo, sapo and vespo."""
    epsilon_high: float
    """Upper clip range of the probability ratio, under cispo the largest ratio itself (5 in its
    recommended setting); not read by sapo and vespo."""
    num_iterations: int
    """Optimizer passes over one batch of completions."""
    importance_sampling_level: str
    """``token`` or ``sequence``."""
    mask_truncated_completions: bool
    """Leave completions without an end token out of the loss."""
    entropy_shaping: EntropyShaping = field(default_factory=EntropyShaping)
    """Larger advantages for tokens of high entropy; off by default."""
    top_entropy_quantile: float = 1.0
    """Share of the tokens of a micro-batch, those of highest entropy, that the policy gradient is
    taken over; 1: all (Wang et al. 2025, "Beyond the 80/20 Rule", arXiv:2506.01939, take 0.2)."""
    no_signal_steps: int
    """A run whose first so many steps hold no group of unequal rewards ends as ``no_signal``."""

    def __post_init__(self) -> None:
        for name in ("num_iterations", "no_signal_steps"):
            value = getattr(self, name)
            require(value >= 1, f"objective.{name} >= 1", **{name: value})
        require(
            self.num_generations >= 2,
            "objective.num_generations >= 2 (a group of one has no advantage)",
            num_generations=self.num_generations,
        )
        super().__post_init__()
        require(self.beta >= 0, "objective.beta >= 0", beta=self.beta)
        for name in ("epsilon", "epsilon_high"):
            value = getattr(self, name)
            require(value > 0, f"objective.{name} > 0", **{name: value})
        self._check_loss()

    def _check_loss(self) -> None:
        require_one_of("objective.loss_type", self.loss_type, LOSS_TYPES)
        require_one_of("objective.scale_rewards", self.scale_rewards, SCALE_REWARDS)
        quantile, level = self.top_entropy_quantile, self.importance_sampling_level
        within = 0 < quantile <= 1
        require(within, "0 < objective.top_entropy_quantile <= 1", top_entropy_quantile=quantile)
        require_one_of("objective.importance_sampling_level", level, ("token", "sequence"))
        needed = LEVEL_OF_LOSS.get(self.loss_type, level)
        if level != needed:
            raise ValueError(
                f"objective.loss_type={self.loss_type} needs objective.importance_sampling_level="
                f"{needed}, got {level}"
            )
        if self.loss_type == "cispo":
            require(
                self.epsilon_high >= 1,
                "objective.epsilon_high >= 1 (under loss_type=cispo the largest ratio itself)",
                epsilon_high=self.epsilon_high,
            )

    @property
    def rows_per_step(self) -> int:
        """Completions behind one optimizer step."""
        return self.prompts_per_step * self.num_generations

    def _rows_are(self) -> str:
        return (
            f"prompts_per_step x num_generations = {self.prompts_per_step} x {self.num_generations}"
        )
