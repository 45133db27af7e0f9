"""What the lab models are: architecture, data mixture and the two stages of pre-training."""

from dataclasses import dataclass, field

FAMILY_SHARES: dict[str, float] = {
    "sum3": 0.4,
    "difference": 0.15,
    "product": 0.1,
    "comparison": 0.05,
    "sorting": 0.15,
    "gcd": 0.15,
}


@dataclass(frozen=True)
class Stage:
    """One stage of pre-training.

    Attributes:
        steps: Optimizer steps.
        learning_rate: Peak learning rate of AdamW.
        warmup: Steps of linear warm-up.
        final_ratio: Learning rate at the end of the cosine, relative to the peak.
        corrupted: Share of solutions that are corrupted, in [0, 1].
    """

    steps: int
    learning_rate: float
    warmup: int
    final_ratio: float
    corrupted: float


@dataclass(frozen=True)
class Recipe:
    """Everything that determines the weights of one lab model on one machine.

    Attributes:
        name: Name of the model.
        hidden_size: Width of the residual stream.
        layers: Number of transformer blocks.
        heads: Attention heads of size `hidden_size / heads`.
        key_value_heads: Key and value heads, shared by groups of query heads.
        stages: Pre-training stages: clean solutions first, partly corrupted ones last.
        minutes: Rough duration of the build on one CPU core, in minutes.
        batch_size: Sequences per step.
        seed: Seed of initialization and data.
        family_shares: Share of each task family in the corpus; sums to 1.
    """

    name: str
    hidden_size: int
    layers: int
    heads: int
    key_value_heads: int
    stages: tuple[Stage, ...]
    minutes: int
    batch_size: int = 128
    seed: int = 0
    family_shares: dict[str, float] = field(default_factory=lambda: dict(FAMILY_SHARES))


def _corrupted(share: float) -> Stage:
    return Stage(steps=200, learning_rate=1e-3, warmup=20, final_ratio=0.1, corrupted=share)


def _clean(steps: int, learning_rate: float) -> Stage:
    return Stage(steps, learning_rate, warmup=200, final_ratio=0.05, corrupted=0.0)


# Stage 1 stops before sums are mastered: a base whose greedy answers were nearly all right
# would be sharpened to saturation in a few dozen steps of reinforcement learning, whatever
# the learning rate. The narrower a model, the less it masters and the fewer wrong solutions
# it needs.
RECIPES: dict[str, Recipe] = {
    recipe.name: recipe
    for recipe in (
        Recipe("lab32", 32, 2, 4, 2, (_clean(3000, 4e-3), _corrupted(0.5)), minutes=4),
        Recipe("lab64", 64, 2, 4, 2, (_clean(1200, 4e-3), _corrupted(0.75)), minutes=3),
        Recipe("lab128", 128, 4, 8, 4, (_clean(900, 2e-3), _corrupted(0.85)), minutes=10),
        Recipe("lab256", 256, 6, 8, 4, (_clean(700, 1e-3), _corrupted(0.85)), minutes=60),
    )
}
