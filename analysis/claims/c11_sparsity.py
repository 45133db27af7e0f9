"""C11: reinforcement learning leaves most weights unchanged, or a 16-bit copy hides the change."""

from __future__ import annotations

from analysis.claims.claim import Claim
from analysis.claims.comparison import Comparer
from analysis.claims.costs import phase
from analysis.claims.groups import matched, model_and_task, value
from analysis.claims.probed import (
    contrast,
    exact,
    few,
    lacks_probes,
    measured_arms,
    percent,
    probed,
    share,
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
from analysis.estimates.stats import Contrast, paired_difference
from analysis.reading.arms import Arm
from analysis.reading.sweep import Sweep

BAND = (0.70, 0.95)
"""Unchanged shares that are claimed: 5 to 30 % modified (Mukherjee et al. 2025, 2505.11711)."""
MASTERS, COPY = share("fp32"), share("bf16")
COUNTS = {"absolute": "1e-5 in bf16", "relative": "1e-3 of the weight in bf16"}
KEY = "model.dtype"
ARTEFACT = "a precision artefact"


def check(sweep: Sweep, search: SearchSummary) -> list[Verdict]:
    """One verdict per arm of reinforcement learning whose weights were measured.

    Args:
        sweep: An experiment with such an arm.
        search: Of the same sweep; not needed, for weights are no scores.
    """
    obstacle = Comparer(sweep).stopped_or_unfinished
    return [_check(sweep, arm, obstacle) for arm in measured_arms(sweep, COPY)]


def _check(sweep: Sweep, arm: Arm, obstacle: Obstacle | None) -> Verdict:
    low, high = BAND
    statement = (
        f"{arm.description} leaves {low:.0%} to {high:.0%} of its weights unchanged, in the "
        f"precision in which they are trained: {model_and_task(sweep, arm)}."
    )
    copy, masters = (contrast(sweep, arm, count) for count in (COPY, MASTERS))
    assert copy is not None, "arms are listed by this count"
    decider = masters or copy
    found = obstacle or few(sweep, decider)
    if found is not None:
        return undecided("C11", statement, (arm.name,), found)
    rounded = _hidden(copy, masters) or (masters is None and ARTEFACT in _twin(sweep, arm))
    flags = ("precision_artefact",) if rounded else ()
    decision = _decide(sweep, arm, copy, masters)
    return decided("C11", statement, (arm.name,), decision, exact(decider), flags)


def _hidden(copy: Contrast, masters: Contrast | None) -> bool:
    """Whether the 16-bit copy says sparse, and the trained weights do not."""
    own, true = exact(copy).interval, None if masters is None else exact(masters).interval
    return own is not None and own[0] >= BAND[0] and true is not None and true[1] < BAND[0]


def _decide(sweep: Sweep, arm: Arm, copy: Contrast, masters: Contrast | None) -> Decision:
    beside = _other_counts(sweep, arm, copy)
    if masters is None:
        reason = (
            f"Trained in bfloat16, whose rounding leaves {percent(copy)} unchanged: without "
            f"float32 weights it is not known whether the update is sparse.{_twin(sweep, arm)}"
        )
        return Decision(UNDECIDED, reason + beside, f"{arm.name} with model.dtype=float32")
    interval = exact(masters).interval
    assert interval is not None, "fewer than three seeds are an obstacle"
    number = f"{percent(masters)} of the float32 weights are unchanged ({masters.n} seeds)"
    if BAND[0] <= interval[0] and interval[1] <= BAND[1]:
        return Decision(SUPPORTED, f"{number}, inside the claimed range.{beside}")
    if interval[1] < BAND[0]:
        hidden = f": {ARTEFACT}" if _hidden(copy, masters) else ""
        return Decision(REFUTED, f"{number}, below the claimed range.{beside[:-1]}{hidden}.")
    if interval[0] > BAND[1]:
        return Decision(REFUTED, f"{number}, above the claimed range: sparser still.{beside}")
    needed = masters.seeds_for(min(abs(masters.point - bound) for bound in BAND))
    advice = more_seeds(needed, masters.n, phase(sweep))
    missing = missing_seeds(needed, masters.n, phase(sweep))
    return Decision(UNDECIDED, f"{number}, across a bound: {advice}.{beside}", missing)


def _other_counts(sweep: Sweep, arm: Arm, copy: Contrast) -> str:
    parts = [f"{percent(copy)} bit for bit after rounding to bf16"]
    for count, words in COUNTS.items():
        found = contrast(sweep, arm, share(count))
        if found is not None:
            parts.append(f"{percent(found)} within {words}")
    return f" Counted otherwise: {', '.join(parts)}."


def _twin(sweep: Sweep, arm: Arm) -> str:
    """What the arm with float32 masters says that differs in nothing else; empty without one."""
    for group in matched(sweep, (KEY,)):
        twins = [other for other in group if value(sweep, other, KEY) == "float32"]
        if arm in group and twins:
            return precision_text(sweep, twins[0], arm)
    return ""


def precision_text(sweep: Sweep, masters: Arm, pure: Arm) -> str:
    """How sparse the update looks in either precision, from the same seeds; empty if unmeasured.

    Each arm is counted in the precision in which it was trained.
    """
    own, other = probed(sweep, masters, MASTERS), probed(sweep, pure, COPY)
    seeds = sorted(own.keys() & other.keys())
    if not seeds:
        return ""
    found = paired_difference([other[s] for s in seeds], [own[s] for s in seeds])
    interval = exact(found).interval
    means = [sum(values[s] for s in seeds) / len(seeds) for values in (own, other)]
    text = (
        f" Float32 masters ({masters.name}) leave {means[0]:.1%} unchanged, pure bfloat16 "
        f"({pure.name}) {means[1]:.1%}, a difference of {100 * found.point:+.1f} points"
    )
    if interval is None:
        return f"{text}, without an interval: {len(seeds)} shared seeds."
    text += f" [{100 * interval[0]:+.1f}, {100 * interval[1]:+.1f}]"
    if interval[0] > 0:
        return f"{text}: {ARTEFACT}."
    if interval[1] < 0:
        return f"{text}: precision does not make updates sparse here."
    return f"{text}, which holds 0."


CLAIM = Claim(
    claim_id="C11",
    title="sparsity",
    statement="Reinforcement learning leaves 70 to 95 % of the weights unchanged.",
    criterion=(
        "Weights that are the same, bit for bit, in the float32 weights that were trained: "
        "supported if the 90 % interval of their share lies inside 70 to 95 %, refuted if wholly "
        "outside. Where a copy in bf16 says sparse and the float32 weights do not, the finding is "
        "a precision artefact; an arm trained in pure bf16 decides nothing. LoRA is judged on its "
        "update (alpha / r) B A of the adapted weights."
    ),
    unit="share",
    question="Does reinforcement learning change only a few of the weights?",
    lacks=lambda sweep: lacks_probes(sweep, COPY),
    check=check,
)
