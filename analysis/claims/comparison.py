"""Which arms may be compared, and what forbids it.

Whatever would make the comparison one of something other than the question (precision, a broken
set-up, missing runs) is an :class:`~analysis.claims.verdict.Obstacle`, and leaves the claim
undecided. A comparison with holes is always refused; there is no option that allows it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from analysis.claims.groups import fingerprint, settings
from analysis.claims.verdict import Obstacle
from analysis.reading.arms import Arm, arms, model_name, task_name
from analysis.reading.sweep import Sweep
from study.plan.arms import is_factor


@dataclass(frozen=True)
class Comparison:
    """An arm with the one it is compared to, or with the reason why there is no fair one."""

    arm: Arm
    baseline: Arm | None
    obstacle: Obstacle | None

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the arms, the baseline last."""
        return (self.arm.name,) if self.baseline is None else (self.arm.name, self.baseline.name)

    @property
    def baseline_text(self) -> str:
        """The baseline in words."""
        return "FullFT" if self.baseline is None else self.baseline.description

    @property
    def arm_noun(self) -> str:
        """The arm in a sentence about the two: ``LoRA`` where its baseline is FullFT."""
        return "LoRA" if self.baseline is None or self.baseline.is_full else self.arm.name

    @property
    def baseline_noun(self) -> str:
        """The baseline in a sentence about the two."""
        return "FullFT" if self.baseline is None or self.baseline.is_full else self.baseline.name


@dataclass(frozen=True)
class Comparer:
    """What forbids a comparison, looked up once for all pairs of a sweep."""

    sweep: Sweep

    def compare(self, arm: Arm, baseline: Arm) -> Comparison:
        """Two arms, with the first obstacle between them.

        That an arm has no score comes before "unfinished": it is final, more runs do not mend it.
        """
        obstacle = (
            self._without_score(baseline)
            or self._without_score(arm)
            or self.stopped_or_unfinished
            or self._precision_differs(arm, baseline)
        )
        return Comparison(arm, baseline, obstacle)

    @cached_property
    def stopped_or_unfinished(self) -> Obstacle | None:
        """Why nothing in the sweep can be judged, if so."""
        return exploratory(self.sweep) or unfinished(self.sweep)

    @cached_property
    def _statuses(self) -> Mapping[str, Counter[str]]:
        groups = self.sweep.runs.groupby("arm", sort=False)["status"]
        return {str(name): Counter(map(str, statuses)) for name, statuses in groups}

    def _without_score(self, arm: Arm) -> Obstacle | None:
        statuses = self._statuses.get(arm.name, Counter())
        silent, pruned, n = statuses["no_signal"], statuses["pruned"], statuses.total()
        if silent:
            return Obstacle(
                "no_signal",
                f"{silent} of {n} runs of {arm.name} found no group of unequal rewards: a fault of "
                "the set-up, not a score; mend the task or its length limit first.",
                f"a task on which {arm.name} gets unequal rewards",
            )
        if pruned:
            return Obstacle(
                "pruned",
                f"{pruned} of {n} runs of {arm.name} were stopped early and have no final score: "
                "a comparison needs a full grid.",
                f"the full grid of {arm.name}",
            )
        return None

    @cached_property
    def _precisions(self) -> Mapping[str, set[tuple[Any, ...]]]:
        """Precision of base, adapter and optimizer state over the records of every arm."""
        found: dict[str, set[tuple[Any, ...]]] = {}
        for name, dtypes in zip(self.sweep.runs["arm"], self.sweep.runs["dtypes"], strict=True):
            known = dtypes if isinstance(dtypes, dict) else {}  # imported sweeps may not know
            precision = known.get("base"), known.get("adapter"), known.get("optimizer")
            found.setdefault(name, set()).add(precision)
        return found

    def _precision_differs(self, arm: Arm, baseline: Arm) -> Obstacle | None:
        if is_factor("model.dtype", self.sweep.experiment.get("factors", [])):
            return None  # the question of the experiment
        found = {one.name: self._trained(one) for one in (arm, baseline)}
        if len(set().union(*found.values())) <= 1:
            return None
        words = "; ".join(
            f"{name}: {' or '.join(', '.join(p) for p in sorted(precisions))}"
            for name, precisions in found.items()
        )
        return Obstacle(
            "precision_differs",
            f"Precision differs between the arms (base, trained, optimizer; {words}): run both in "
            "the same one.",
            f"{arm.name} and {baseline.name} in one precision",
        )

    def _trained(self, arm: Arm) -> set[tuple[str, str, str]]:
        """Precision of base, trained weights and optimizer state; FullFT trains the base."""
        found = self._precisions.get(arm.name, set())
        return {
            (str(base), str(base if arm.is_full else own), str(state)) for base, own, state in found
        }


def setting(sweep: Sweep) -> str:
    """Model and task, for the end of a statement."""
    return f"{model_name(sweep)} on {task_name(sweep)}"


def comparisons(sweep: Sweep) -> list[Comparison]:
    """Every LoRA arm with the FullFT arm that differs in the method alone, by rank.

    Returns:
        Empty if the sweep lacks either method, or stops early. Of two baselines the one of the
        arm's own precision is taken; one of another precision only if there is no better.
    """
    return [] if exploratory(sweep) is not None else pairs(sweep)


def pairs(sweep: Sweep) -> list[Comparison]:
    """The same, also where early stopping is the obstacle of every comparison."""
    if lacks_methods(sweep):
        return []
    comparer, baselines = Comparer(sweep), _baselines(sweep)
    found = []
    for arm in arms(sweep):
        if arm.is_full:
            continue
        full = baselines.get(arm.name)
        found.append(_lonely(arm) if full is None else comparer.compare(arm, full))
    return found


def rank_groups(sweep: Sweep) -> list[list[Comparison]]:
    """The comparisons in groups that differ in rank alone: what "every rank" is about."""
    flat = settings(sweep)
    groups: dict[str, list[Comparison]] = {}
    for pair in comparisons(sweep):
        key = fingerprint(flat[pair.arm.name], ("method.rank",))
        groups.setdefault(key, []).append(pair)
    return list(groups.values())


def _baselines(sweep: Sweep) -> dict[str, Arm]:
    """The baseline of each LoRA arm that has one."""
    flat, every = settings(sweep), arms(sweep)
    found: dict[str, Arm] = {}
    for keys in (("method", "model.dtype"), ("method",)):  # the better match comes last and stays
        full = {fingerprint(flat[arm.name], keys): arm for arm in reversed(every) if arm.is_full}
        for arm in every:
            match = full.get(fingerprint(flat[arm.name], keys))
            if match is not None and not arm.is_full:
                found[arm.name] = match
    return found


def _lonely(arm: Arm) -> Comparison:
    reason = (
        f"No FullFT arm differs from {arm.name} in the method alone: add one with the same model, "
        "task, objective and evaluation."
    )
    missing = f"a FullFT arm with the settings of {arm.name}"
    return Comparison(arm, None, Obstacle("no_baseline", reason, missing))


def lacks_methods(sweep: Sweep) -> str:
    """What a comparison of LoRA with full fine-tuning would need; empty if the arms are there."""
    methods = {arm.is_full for arm in arms(sweep)}
    if True not in methods:
        return "a FullFT arm to compare with"
    if False not in methods:
        return "a LoRA arm"
    return ""


def lacks_baseline(sweep: Sweep) -> str:
    """The same, and that at least one LoRA arm has a baseline.

    A search that only selects is asked nothing: its claims are undecided whatever its arms.
    """
    if sweep.selects_only:
        return ""
    lack = lacks_methods(sweep)
    if not lack and not _baselines(sweep):
        return "a FullFT arm that differs from a LoRA arm in the method alone"
    return lack


def exploratory(sweep: Sweep) -> Obstacle | None:
    """The obstacle that an experiment is which looks for something else than a verdict."""
    if sweep.is_joint:
        return Obstacle(
            "joint_search",
            "A joint search (experiment.best) tries arms at learning rates of its own choice, some "
            "more than others: it selects a setting and scores it; for verdicts run an experiment "
            "with a grid.",
            "an experiment with a grid",
        )
    if sweep.is_ablation:
        return Obstacle(
            "ablation",
            "An ablation changes one factor at a time between two settings and goes on from the "
            "change that scores best: it says what each change brings; for verdicts run an "
            "experiment whose arms are all declared.",
            "an experiment whose arms are all declared",
        )
    if not sweep.stops_early:
        return None
    return Obstacle(
        "early_stopping",
        "This search stops poor learning rates early, so curves and ratios are not estimated; "
        "it selects a setting and scores it: for verdicts run an experiment without "
        "early_stopping.",
        "an experiment without early_stopping",
    )


def unfinished(sweep: Sweep) -> Obstacle | None:
    """The obstacle that missing runs are; an imported sweep is what it is, holes and all."""
    if sweep.complete or sweep.imported:
        return None
    given_up = int((sweep.planned["status"] == "given up").sum())
    retry = f"; {given_up} of them failed for good: launch with retry=true" if given_up else ""
    unread = int((sweep.excluded["kind"] == "unreadable record").sum())
    broken = f"; {unread} of them left a record that cannot be read" if unread else ""
    n, m = len(sweep.runs), sweep.expected
    missing = f"the {m - n} missing run{'' if m - n == 1 else 's'}"
    reason = f"Unfinished, {n} of {m} runs: finish the sweep{retry}{broken}."
    return Obstacle("unfinished", reason, missing)
