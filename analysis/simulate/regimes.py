"""Named situations that estimators are tried in: noise, shape of the curve, grid, seeds."""

from __future__ import annotations

from dataclasses import dataclass, replace

from analysis.simulate.draws import ArmTruth, Design, UShape
from analysis.simulate.truths import Truth

CLEAR = ArmTruth()
"""A plateau of 0.9 decades that ends in a clear cliff."""
WIDE = replace(CLEAR, span=1.89)
NARROW = replace(CLEAR, span=0.79)
SOFT = replace(CLEAR, cliff_scale=0.15)
SHARP = replace(CLEAR, cliff_scale=0.015, cliff_jitter=0.0)
LATER_CLIFF = replace(CLEAR, ramp=CLEAR.ramp - 0.19, span=CLEAR.span + 0.65)
"""0.65 decades wider than the clear one: its ramp earlier, its cliff later."""


FRESH = ArmTruth(span=1.4, ramp_scale=0.3, decline=0.15, cliff_scale=0.09, cliff_jitter=0.08)
"""A slow ramp, a tilted plateau, a scattered cliff: no constant was chosen by it."""


@dataclass(frozen=True)
class Regime:
    """Two arms and how they are sampled. Where LoRA's curve lies decides nothing but the ratio."""

    lora: Truth
    full: Truth
    design: Design
    full_design: Design | None = None
    """Of the baseline, where it differs."""

    def with_seeds(self, seeds: int) -> Regime:
        """The same with ``seeds`` search seeds in the arm that has fewer, the surplus kept."""
        other = self.full_design
        if other is not None:
            surplus = other.seeds - self.design.seeds
            other = replace(other, seeds=seeds + surplus)
        return replace(self, design=replace(self.design, seeds=seeds), full_design=other)

    def true_log_ratio(self, fraction: float) -> float:
        """Decades between the true optima."""
        return self.lora.best(fraction) - self.full.best(fraction)


NOISY = Design(noise=0.03, eval_prompts=256)
TALL = UShape(height=0.9, depth=1.2)
LOSS = UShape(height=-0.5, depth=0.06, skew=3.0, base=None)
"""A loss with its sign changed, about as deep and as skewed as public fine-tuning sweeps."""
LOSS_GRID = Design(spacing=0.5, points=6, noise=0.0004, eval_prompts=None)

REGIMES: dict[str, Regime] = {
    "low noise": Regime(CLEAR, CLEAR, Design()),
    "high noise": Regime(CLEAR, CLEAR, NOISY),
    "wide plateau": Regime(WIDE, WIDE, Design(points=13)),
    "narrow peak": Regime(NARROW, NARROW, Design(points=8)),
    "soft cliff": Regime(SOFT, SOFT, Design(points=10)),
    "sharp cliff": Regime(SHARP, SHARP, Design()),
    "soft against sharp": Regime(SOFT, SHARP, Design(points=10)),
    "unequal widths": Regime(LATER_CLIFF, CLEAR, Design(points=12)),
    "unequal noise": Regime(CLEAR, replace(CLEAR, rise=0.6), Design(), NOISY),
    "unequal seeds": Regime(CLEAR, CLEAR, Design(seeds=3), Design(seeds=8)),
    "third of a decade": Regime(CLEAR, CLEAR, Design(spacing=1 / 3, points=7)),
    "half a decade": Regime(CLEAR, CLEAR, Design(spacing=0.5, points=6)),
    "irregular grid": Regime(CLEAR, CLEAR, Design(points=10, irregular=0.3)),
    "other grid per arm": Regime(CLEAR, CLEAR, Design(), Design(spacing=1 / 3, points=7)),
    "fresh shape": Regime(FRESH, FRESH, Design(points=12)),
    "fresh against clear": Regime(FRESH, CLEAR, Design(points=12)),
    "u-shape": Regime(TALL, TALL, Design(points=11)),
    "loss, no base": Regime(LOSS, LOSS, LOSS_GRID),
    "loss, other skew": Regime(LOSS, replace(LOSS, skew=1.5), LOSS_GRID),
}
SHAPES: dict[str, Truth] = {
    "clear": CLEAR,
    "wide": WIDE,
    "narrow": NARROW,
    "soft": SOFT,
    "sharp": SHARP,
    "u": TALL,
}
"""What ``python -m analysis simulate --shape`` offers."""
