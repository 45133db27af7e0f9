"""How weights are adapted: full fine-tuning or LoRA."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from study.config.laws import require, require_one_of

ALPHA_RULES = ("constant", "2r", "sqrt")
DEFAULT_LORA_ALPHA = 32.0


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
        alpha = self.lora_alpha
        require(0 < alpha < math.inf, "0 < method.lora_alpha < inf", lora_alpha=alpha)
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


METHODS: dict[str, type[MethodConfig]] = {"full": FullMethod, "lora": LoraMethod}
