"""What is measured of a trained model beside its score."""

from __future__ import annotations

from dataclasses import dataclass

from study.config.laws import require_one_of


@dataclass(kw_only=True)
class ProbesConfig:
    """Measurements of a run's stored weights, taken at its end; none of them changes the run."""

    name: str = "none"
    """``none``; ``default``: what adds under a tenth to a run; ``full``: with random updates enough
    for ranges of 90 %, and behaviour. ``python -m study.probes`` measures stored runs afterwards.
    """
    draws: int = 0
    """Random updates of each kind that the update is held against; 0 with ``none``."""
    behaviour: bool = False
    """Whether base and tuned model are sampled too: pass@k, diversity, divergence, other tasks."""

    def __post_init__(self) -> None:
        require_one_of("probes.name", self.name, ("none", "default", "full"))
        if self.is_on and self.draws < 2:
            raise ValueError(
                f"probes.draws >= 2 must hold, since a range needs two, got {self.draws}"
            )
        for name in ("draws", "behaviour"):
            if not self.is_on and getattr(self, name):
                raise ValueError(
                    f"probes.{name} is not read under probes=none, got {getattr(self, name)}"
                )

    @property
    def is_on(self) -> bool:
        """Whether anything is measured."""
        return self.name != "none"
