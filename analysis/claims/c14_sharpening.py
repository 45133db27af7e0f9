"""C14: reinforcement learning sharpens: more right at the first try, less that many tries find."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from analysis.claims.claim import Claim
from analysis.claims.comparison import Comparer
from analysis.claims.groups import model_and_task
from analysis.claims.probed import contrast, exact, few, measured_arms, probed
from analysis.claims.verdict import (
    REFUTED,
    SUPPORTED,
    UNDECIDED,
    Decision,
    Obstacle,
    Verdict,
    decided,
    undecided,
)
from analysis.estimates.search import SearchSummary
from analysis.estimates.stats import CONFIDENCE, Contrast
from analysis.reading.arms import Arm
from analysis.reading.probes import at
from analysis.reading.sweep import Sweep

NEEDED = "samples of base and tuned model on held-out prompts, measured by probes"


@dataclass(frozen=True)
class _Part:
    """One of the three things that sharpening says; above 0 is what is claimed."""

    words: str
    contrast: Contrast

    def bounds(self, confidence: float) -> tuple[float, float]:
        half = self.contrast.half_width(confidence)
        return self.contrast.point - half, self.contrast.point + half

    @property
    def text(self) -> str:
        low, high = self.bounds(CONFIDENCE)
        return f"{self.words} {self.contrast.point:+.3f} [{low:+.3f}, {high:+.3f}]"


def _samples(content: Mapping[str, Any]) -> float | None:
    return at(content, "behaviour", "settings", "samples")


def _first(content: Mapping[str, Any]) -> float | None:
    """Gain in pass@1."""
    return _gain(content, 1)


def _most(content: Mapping[str, Any]) -> float | None:
    """The base's lead at as many tries as there are samples."""
    samples = _samples(content)
    gain = None if samples is None else _gain(content, int(samples))
    return None if gain is None else -gain


def _gain(content: Mapping[str, Any], k: int) -> float | None:
    tuned, base = (at(content, "behaviour", m, "pass_at_k", str(k)) for m in ("tuned", "base"))
    return None if tuned is None or base is None else tuned - base


def _narrowed(content: Mapping[str, Any]) -> float | None:
    """By how much the entropy of a prompt's answers fell, in nats, mean over prompts."""
    if _samples(content) is None:
        return None
    base, tuned = (content["behaviour"][m]["answer_entropy"] for m in ("base", "tuned"))
    return float(sum(base) / len(base) - sum(tuned) / len(tuned))


def _crossover(content: Mapping[str, Any]) -> float | None:
    return at(content, "behaviour", "crossover")


def check(sweep: Sweep, search: SearchSummary) -> list[Verdict]:
    """One verdict per arm of reinforcement learning whose behaviour was measured.

    Args:
        sweep: An experiment with such an arm.
        search: Of the same sweep; not needed, for the base is measured beside every run.
    """
    obstacle = Comparer(sweep).stopped_or_unfinished
    return [_check(sweep, arm, obstacle) for arm in measured_arms(sweep, _first)]


def _check(sweep: Sweep, arm: Arm, obstacle: Obstacle | None) -> Verdict:
    statement = (
        f"{arm.description} raises pass@1, lowers the diversity of answers, and is overtaken by "
        f"its base at many tries: {model_and_task(sweep, arm)}."
    )
    lead = contrast(sweep, arm, _most)
    assert lead is not None, "arms are listed by pass@1, which is measured with it"
    found = obstacle or few(sweep, lead) or _mixed(sweep, arm)
    if found is not None:
        return undecided("C14", statement, (arm.name,), found)
    return decided("C14", statement, (arm.name,), _decide(sweep, arm, lead), exact(lead))


def _mixed(sweep: Sweep, arm: Arm) -> Obstacle | None:
    """What pass@k at the largest k cannot be averaged over."""
    counts = sorted({int(n) for n in probed(sweep, arm, _samples).values()})
    if len(counts) == 1:
        return None
    reason = f"Runs were measured with {counts} samples a prompt: measure all with the same."
    return Obstacle("mixed_samples", reason, f"{arm.name} measured with one number of samples")


def _decide(sweep: Sweep, arm: Arm, lead: Contrast) -> Decision:
    """All three must hold; each could refute, so that is corrected for three looks."""
    first, narrowed = (contrast(sweep, arm, part) for part in (_first, _narrowed))
    assert first is not None and narrowed is not None, "they are measured with the lead"
    k = int(next(iter(probed(sweep, arm, _samples).values())))
    parts = [
        _Part("gain in pass@1", first),
        _Part("fall of the answers' entropy in nats", narrowed),
        _Part(f"lead of the base in pass@{k}", lead),
    ]
    shown = f"{'; '.join(part.text for part in parts)} ({lead.n} seeds)"
    shown = f"{shown[0].upper()}{shown[1:]}"
    beside = f" {_crossover_text(sweep, arm, lead.n)}"
    against = [p.words for p in parts if p.bounds(1 - (1 - CONFIDENCE) / len(parts))[1] < 0]
    if against:
        return Decision(REFUTED, f"{shown}: below 0 is the {' and the '.join(against)}.{beside}")
    if all(part.bounds(CONFIDENCE)[0] > 0 for part in parts):
        return Decision(SUPPORTED, f"{shown}: all above 0.{beside}")
    held = [p.words for p in parts if p.bounds(CONFIDENCE)[0] <= 0]
    reason = f"{shown}: not above 0 is the {' and the '.join(held)}.{beside}"
    return Decision(UNDECIDED, reason, "more seeds, or more samples a prompt")


def _crossover_text(sweep: Sweep, arm: Arm, runs: int) -> str:
    found = sorted(int(k) for k in probed(sweep, arm, _crossover).values())
    if not found:
        return "In no run does the base overtake."
    ks = ", ".join(map(str, found))
    return f"The base overtakes in {len(found)} of {runs} runs, from k = {ks} on."


CLAIM = Claim(
    claim_id="C14",
    title="sharpening",
    statement=(
        "Reinforcement learning raises pass@1 and lowers the diversity of answers; the base "
        "overtakes at many tries."
    ),
    criterion=(
        "Unbiased pass@k (Chen et al. 2021) and the entropy of answers of base and tuned model on "
        "the same held-out prompts, intervals over seeds. Supported if the 90 % intervals of the "
        "gain in pass@1, of the fall of the entropy and of the base's lead at the largest k all "
        "lie above 0; refuted if one, corrected for three, lies wholly below."
    ),
    unit="difference",
    question="Does the model learn anything that its base could not already do in many tries?",
    lacks=lambda sweep: "" if measured_arms(sweep, _first) else NEEDED,
    check=check,
)
