"""What probes of a run's weights cost, before anything runs."""

from __future__ import annotations

from collections.abc import Sequence

from study.plan.arms import Arm

OVERHEAD_S, FLOPS_PER_S = 2e-3, 2e10
"""A small decomposition, and the rate of a large one in fp64 on one core of 2026's servers:
measured for matrices from 64 x 64 (2.8 ms) to 1,024 x 1,024 (about 1 s)."""
SVD_FLOPS = 22
"""Of p^2 q, for all singular vectors of a p x q matrix (Golub and Van Loan, 4th ed., 8.6.3)."""


def decompositions(draws: int) -> int:
    """Singular value decompositions of one matrix: 5 for the matrix, its update and their sum, and
    for every draw 2 of an update without structure and 1 of one with the update's own values.
    """
    return 5 + 3 * draws


def probe_seconds(arm: Arm) -> float:
    """Seconds that one run's probes take on one core, about; 0 where nothing is measured."""
    config, model = arm.config, arm.model
    if not config.probes.is_on or config.save == "none":
        return 0.0
    shapes = [model.linear_modules[name] for name in arm.target_modules or model.linear_modules]
    once = sum(OVERHEAD_S + SVD_FLOPS * min(s) ** 2 * max(s) / FLOPS_PER_S for s in shapes)
    return decompositions(config.probes.draws) * once


def probes_line(arms: Sequence[Arm]) -> str:
    """What a launch says of the probes of its runs, a sentence; empty if there are none."""
    asked = [arm for arm in arms if arm.config.probes.is_on]
    if not asked:
        return ""
    config = asked[0].config.probes
    costs = sorted(cost for cost in map(probe_seconds, asked) if cost)
    if not costs:
        return (
            f"probes={config.name} measures the weights that a run keeps: with save=none nothing "
            "is measured"
        )
    ends = dict.fromkeys(f"{cost:.2g}" for cost in (costs[0], costs[-1]))
    line = f"probes: {config.name}, about {' to '.join(ends)} s a run on one core"
    line += f" ({config.draws} random updates of each kind)"
    if config.behaviour:
        line += ", and the sampling of base and tuned model, as much as 100 steps of 64 completions"
    unsaved = [arm.name for arm in asked if arm.config.save == "none"]
    return f"{line}; none for {', '.join(unsaved)}, with save=none" if unsaved else line
