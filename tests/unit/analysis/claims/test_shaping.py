"""C17: shaped against plain arms, the entropy they keep, and whether rank matters for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pandas as pd
import pytest

from analysis.claims import c17_shaping, not_addressed
from analysis.claims.verdict import Verdict
from analysis.reading.sweep import Sweep
from tests.unit.analysis.claims.worlds import world
from tests.unit.analysis.simulated_sweeps import MED, experiment, judged

STEPS = 10


def objective(alpha: float) -> dict[str, dict[str, object]]:
    shaping = {"alpha": alpha, "kappa": 2.0}
    return {"objective": {"name": "grpo", "steps": STEPS, "entropy_shaping": shaping}}


def sweep(
    gains: Mapping[str, Sequence[float]], entropies: Mapping[str, float] | None = None
) -> Sweep:
    """Arms ``lora-r1`` and ``lora-r1-shaped``, which scores so much better on each seed."""
    names = [name for arm in gains for name in (arm, f"{arm}-shaped")]
    curves = world(dict.fromkeys(names, MED))
    report = {}
    for arm, own in gains.items():
        report[arm] = [0.50 + 0.01 * i for i in range(len(own))]
        report[f"{arm}-shaped"] = [a + b for a, b in zip(report[arm], own, strict=True)]
    configs = {name: objective(0.4 if name.endswith("shaped") else 0.0) for name in names}
    factors = ("method", "objective.entropy_shaping.alpha")
    found = experiment(curves, report, configs=configs, factors=factors, margin=0.04)
    return replace(found, metrics=entropy_rows(found, entropies or {}))


def entropy_rows(found: Sweep, entropies: Mapping[str, float]) -> pd.DataFrame:
    """Entropy 9 in the first steps; in the last fifth that of the arm, seeds a hundredth apart."""
    rows = [
        (run_id, step, "train/entropy", entropies[arm] + 0.01 * (seed % 2) if step > 8 else 9.0)
        for run_id, arm, seed in zip(
            found.runs["run_id"], found.runs["arm"], found.runs["seed"], strict=True
        )
        for step in range(1, STEPS + 1)
        if arm in entropies
    ]
    return pd.DataFrame(rows, columns=["run_id", "step", "metric", "value"])


def verdicts(found: Sweep) -> dict[tuple[str, ...], Verdict]:
    return {verdict.arms: verdict for verdict in judged(c17_shaping.check, found)}


@pytest.mark.parametrize(
    ("gains", "expected"),
    [
        ([0.05, 0.06, 0.07, 0.06, 0.06], "supported"),
        ([-0.05, -0.06, -0.07, -0.06, -0.06], "refuted"),
        ([-0.05, 0.06, -0.07, 0.06, 0.01], "undecided"),
    ],
)
def test_the_difference_decides(gains: list[float], expected: str) -> None:
    found = verdicts(sweep({"lora-r1": gains}))["lora-r1-shaped", "lora-r1"]
    assert (found.verdict, found.n_seeds) == (expected, 5)
    assert found.estimate == pytest.approx(sum(gains) / 5)


def test_the_entropy_of_the_last_fifth_is_stated() -> None:
    gains = {"lora-r1": [0.05, 0.06, 0.07, 0.06, 0.06]}
    entropies = {"lora-r1": 0.30, "lora-r1-shaped": 0.42}
    found = verdicts(sweep(gains, entropies))["lora-r1-shaped", "lora-r1"]
    # Equal on every seed: a difference without a spread has no interval.
    assert "over the last 20% of the steps: +0.120 nat (no interval, n = 5)" in found.reason
    assert "Entropy" not in verdicts(sweep(gains))["lora-r1-shaped", "lora-r1"].reason


@pytest.mark.parametrize(
    ("gain", "expected"), [(0.0, "supported"), (0.2, "refuted"), (0.04, "undecided")]
)
def test_ranks_are_compared_in_what_they_gain(gain: float, expected: str) -> None:
    own = [0.05, 0.06, 0.07, 0.06, 0.06]
    other = [
        x + gain + aside for x, aside in zip(own, (0.01, -0.01, 0.0, 0.01, -0.01), strict=True)
    ]
    found = verdicts(sweep({"lora-r1": own, "lora-r8": other}))
    interaction = found["lora-r8-shaped", "lora-r1-shaped"]
    assert (interaction.verdict, interaction.flags) == (expected, ("interaction",))
    assert interaction.estimate == pytest.approx(gain)
    assert len(found) == 3


def test_arms_that_differ_in_shaping_are_needed() -> None:
    plain = experiment(world({"full": MED, "lora-r1": MED}))
    lacks = {claim.claim_id: lack for claim, lack in not_addressed(plain)}
    assert lacks["C17"].startswith("arms that differ in objective.entropy_shaping.alpha alone")
