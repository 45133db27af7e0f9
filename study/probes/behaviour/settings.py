"""What measurements of behaviour are free to choose."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class BehaviourSettings:
    """All of it is written beside the results."""

    prompts: int = 64
    """Of the task's report prompts, which no run trains on; of every other family as many."""
    samples: int = 64
    """Per prompt, from base and tuned model each: pass@k goes up to this k."""
    shown: int = 4
    """First prompts whose distributions of answers are kept."""
    scored: int = 8
    """Of a prompt's samples, those whose tokens' entropies and divergences are computed."""
    family_samples: int = 4
    """Per prompt of every family that was not trained."""

    def __post_init__(self) -> None:
        for name in ("prompts", "samples", "scored", "family_samples"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} >= 1 must hold, got {getattr(self, name)}")
        if not 0 <= self.shown <= self.prompts:
            raise ValueError(f"0 <= shown <= prompts must hold, got {self.shown} of {self.prompts}")
        if self.scored > self.samples:
            raise ValueError(f"scored <= samples must hold, got {self.scored} of {self.samples}")
