"""C12: though sparse, the update of full fine-tuning is nearly full rank."""

from __future__ import annotations

from analysis.claims.claim import Claim
from analysis.claims.comparison import Comparer
from analysis.claims.costs import phase
from analysis.claims.groups import model_and_task
from analysis.claims.probed import (
    Measured,
    contrast,
    exact,
    few,
    in_masters,
    lacks_probes,
    measured_arms,
    over_null,
    overall,
    percent,
    times,
)
from analysis.claims.verdict import (
    REFUTED,
    SUPPORTED,
    UNDECIDED,
    Decision,
    Obstacle,
    Verdict,
    decided,
    missing_seeds,
    more_seeds,
    undecided,
)
from analysis.estimates.search import SearchSummary
from analysis.estimates.stats import Contrast
from analysis.reading.arms import Arm
from analysis.reading.sweep import Sweep

NUMERICAL: Measured = overall("numerical_rank_share")
SPREAD: Measured = over_null("effective_rank_share", "gaussian")
NEARLY_FULL, SPREAD_OUT = 0.95, 0.5
"""Bounds on the numerical rank, of which 99 % and more are published (Mukherjee et al. 2025,
2505.11711), and on the effective one, over that of Gaussian updates."""
TOPS = (1, 4, 16)


def _asked(sweep: Sweep) -> list[Arm]:
    """LoRA's rank is what it was set to, and rounding fills up ranks."""
    measured = measured_arms(sweep, NUMERICAL)
    return [arm for arm in measured if arm.is_full and in_masters(sweep, arm)]


def _lacks(sweep: Sweep) -> str:
    lack = lacks_probes(sweep, NUMERICAL)
    return lack or ("" if _asked(sweep) else "a FullFT arm in float32 whose weights were measured")


def check(sweep: Sweep, search: SearchSummary) -> list[Verdict]:
    """One verdict per FullFT arm whose weights were measured.

    Args:
        sweep: An experiment with such an arm.
        search: Of the same sweep; not needed, for weights are no scores.
    """
    obstacle = Comparer(sweep).stopped_or_unfinished
    return [_check(sweep, arm, obstacle) for arm in _asked(sweep)]


def _check(sweep: Sweep, arm: Arm, obstacle: Obstacle | None) -> Verdict:
    statement = (
        f"The update of {arm.description} is nearly full rank, mean over the matrices of layers: "
        f"{model_and_task(sweep, arm)}."
    )
    numerical, spread = contrast(sweep, arm, NUMERICAL), contrast(sweep, arm, SPREAD)
    assert numerical is not None, "arms are listed by this number"
    found = obstacle or few(sweep, numerical)
    if spread is None:
        reason = "No random updates were measured beside the real ones: measure the runs again."
        found = found or Obstacle("incomplete", reason, "random updates beside the real ones")
    if found is not None or spread is None:
        assert found is not None
        return undecided("C12", statement, (arm.name,), found)
    decision = _decide(sweep, arm, numerical, spread)
    return decided("C12", statement, (arm.name,), decision, exact(spread))


def _decide(sweep: Sweep, arm: Arm, numerical: Contrast, spread: Contrast) -> Decision:
    tests = ((numerical, NEARLY_FULL), (spread, SPREAD_OUT))
    intervals = [exact(found).interval for found, _ in tests]
    ends = [interval or (0.0, 1.0) for interval in intervals]
    number = (
        f"Numerical rank {percent(numerical)} of the full one; effective rank {times(spread)} "
        f"times that of Gaussian updates ({numerical.n} seeds).{_energy(sweep, arm)}"
    )
    if all(low > bound for (low, _), (_, bound) in zip(ends, tests, strict=True)):
        return Decision(SUPPORTED, f"{number} Both are above {NEARLY_FULL:.0%} and {SPREAD_OUT:g}.")
    below = [high < bound for (_, high), (_, bound) in zip(ends, tests, strict=True)]
    if below[0]:
        return Decision(REFUTED, f"{number} The numerical rank is below {NEARLY_FULL:.0%}.")
    if below[1]:
        how = "full by rounding at most, the energy lies in few directions"
        return Decision(REFUTED, f"{number} The effective rank is below {SPREAD_OUT:g}: {how}.")
    open_, bound = next(t for t, (low, _) in zip(tests, ends, strict=True) if low <= t[1])
    needed = open_.seeds_for(abs(open_.point - bound))
    advice = more_seeds(needed, open_.n, phase(sweep))
    missing = missing_seeds(needed, open_.n, phase(sweep))
    return Decision(UNDECIDED, f"{number} One holds its bound: {advice}.", missing)


def _energy(sweep: Sweep, arm: Arm) -> str:
    """The energy in the leading directions, and the stable rank."""
    parts = []
    for k in TOPS:
        found = contrast(sweep, arm, overall(f"energy_top_{k}"))
        if found is not None:
            parts.append(f"{percent(found)} in the first {k}")
    stable = contrast(sweep, arm, overall("stable_rank"))
    text = f" Energy: {', '.join(parts)}." if parts else ""
    return text + (f" Stable rank {times(stable)}." if stable else "")


CLAIM = Claim(
    claim_id="C12",
    title="full rank",
    statement="Though sparse, the update that reinforcement learning makes is nearly full rank.",
    criterion=(
        "Full fine-tuning, mean over the matrices of layers: supported if the 90 % intervals of "
        "the numerical rank (over the full one) and of the effective rank (over that of Gaussian "
        "updates of equal norm) lie above 0.95 and 0.5, refuted if one lies wholly below. The "
        "second guards against rounding, which makes every numerical rank full."
    ),
    unit="ratio",
    question="Does reinforcement learning change weights in all directions?",
    lacks=_lacks,
    check=check,
)
