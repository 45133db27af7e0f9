"""Which arms may be compared: each LoRA arm with the full fine-tuning that differs in nothing else.

Whatever would make the comparison one of something other than the method (precision, a broken
set-up, missing runs) is an :class:`~analysis.claims.verdict.Obstacle`, and leaves the claim
undecided. A comparison with holes is always refused; there is no option that allows it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from analysis.claims.verdict import Obstacle
from analysis.reading.arms import Arm, arms, model_name, task_name
from analysis.reading.sweep import Sweep
from study.plan.arms import is_factor

METHOD_KEYS = ("method", "seed", "save", "engine")
"""Parts of a run's config in which a LoRA arm and its baseline may differ."""


@dataclass(frozen=True)
class Comparison:
    """A LoRA arm with its baseline, or with the reason why there is no fair one."""

    lora: Arm
    full: Arm | None
    obstacle: Obstacle | None

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the arms, the baseline last."""
        return (self.lora.name,) if self.full is None else (self.lora.name, self.full.name)

    @property
    def baseline(self) -> str:
        """The baseline in words."""
        return "FullFT" if self.full is None else self.full.description


def setting(sweep: Sweep) -> str:
    """Model and task, for the end of a statement."""
    return f"{model_name(sweep)} on {task_name(sweep)}"


def comparisons(sweep: Sweep) -> list[Comparison]:
    """Every LoRA arm with its baseline, by rank; empty if the sweep lacks either method."""
    if whole_sweep_obstacle(sweep, methods_only=True) is not None:
        return []
    return [_compare(sweep, arm) for arm in arms(sweep) if not arm.is_full]


def whole_sweep_obstacle(sweep: Sweep, *, methods_only: bool = False) -> Obstacle | None:
    """Why nothing in the sweep can be judged, if so.

    Args:
        sweep: The experiment.
        methods_only: Ask only what holds finished or not: early stopping, a method that lacks.
    """
    if sweep.stops_early:
        return Obstacle(
            "early_stopping",
            "This search stops poor learning rates early, so curves and ratios are not estimated; "
            "it selects a setting and scores it: for verdicts run an experiment without "
            "early_stopping.",
        )
    methods = {arm.is_full for arm in arms(sweep)}
    if True not in methods:
        return Obstacle("no_baseline", "The sweep has no FullFT arm to compare with: add one.")
    if False not in methods:
        return Obstacle("no_lora", "The sweep has no LoRA arm: add one.")
    if methods_only or sweep.complete:
        return None
    given_up = int((sweep.planned["status"] == "given up").sum())
    retry = f"; {given_up} of them failed for good: launch with retry=true" if given_up else ""
    unread = int((sweep.excluded["kind"] == "unreadable record").sum())
    broken = f"; {unread} of them left a record that cannot be read" if unread else ""
    n, m = len(sweep.runs), sweep.expected
    return Obstacle("unfinished", f"Unfinished, {n} of {m} runs: finish the sweep{retry}{broken}.")


def _compare(sweep: Sweep, lora: Arm) -> Comparison:
    full = _baseline(sweep, lora)
    if full is None:
        obstacle = Obstacle(
            "no_baseline",
            f"No FullFT arm differs from {lora.name} in the method alone: add one with the same "
            "model, task, objective and evaluation.",
        )
        return Comparison(lora, None, obstacle)
    obstacle_found = (
        _without_score(sweep, full)  # before "unfinished": it is final, more runs do not mend it
        or _without_score(sweep, lora)
        or whole_sweep_obstacle(sweep)
        or _precision_differs(sweep, lora, full)
    )
    return Comparison(lora, full, obstacle_found)


def _baseline(sweep: Sweep, lora: Arm) -> Arm | None:
    """The FullFT arm of the same config; one of another precision only if there is no better."""
    full_arms = [arm for arm in arms(sweep) if arm.is_full]
    for keep_precision in (True, False):
        wanted = _shared_settings(sweep, lora, keep_precision)
        for arm in full_arms:
            if _shared_settings(sweep, arm, keep_precision) == wanted:
                return arm
    return None


def _shared_settings(sweep: Sweep, arm: Arm, keep_precision: bool) -> str:
    config: dict[str, Any] = json.loads(json.dumps(sweep.plan["arms"][arm.name]["config"]))
    for key in METHOD_KEYS:
        config.pop(key, None)
    # Each arm has its own learning rate, and micro-batches are gradient accumulation.
    for key in ("learning_rate", "micro_batch_size"):
        config.get("objective", {}).pop(key, None)
    if not keep_precision:
        config.get("model", {}).pop("dtype", None)
    return json.dumps(config, sort_keys=True)


def _precision_differs(sweep: Sweep, lora: Arm, full: Arm) -> Obstacle | None:
    if is_factor("model.dtype", sweep.experiment.get("factors", [])):
        return None  # the question of the experiment
    found = {arm.name: _precisions(sweep, arm) for arm in (lora, full)}
    if len(set().union(*found.values())) <= 1:
        return None
    words = "; ".join(
        f"{name}: {' or '.join(', '.join(p) for p in sorted(precisions))}"
        for name, precisions in found.items()
    )
    return Obstacle(
        "precision_differs",
        f"Precision differs between the arms (base, trained, optimizer; {words}): run both in the "
        "same one.",
    )


def _precisions(sweep: Sweep, arm: Arm) -> set[tuple[str, str, str]]:
    """Precision of base, trained weights and optimizer state over the records of an arm."""
    trained = "base" if arm.is_full else "adapter"
    return {
        (str(d.get("base")), str(d.get(trained)), str(d.get("optimizer")))
        for d in sweep.runs["dtypes"][sweep.runs["arm"] == arm.name]
    }


def _without_score(sweep: Sweep, arm: Arm) -> Obstacle | None:
    statuses = sweep.runs["status"][sweep.runs["arm"] == arm.name]
    silent, pruned = int((statuses == "no_signal").sum()), int((statuses == "pruned").sum())
    if silent:
        return Obstacle(
            "no_signal",
            f"{silent} of {len(statuses)} runs of {arm.name} found no group of unequal rewards: a "
            "fault of the set-up, not a score; mend the task or its length limit first.",
        )
    if pruned:
        return Obstacle(
            "pruned",
            f"{pruned} of {len(statuses)} runs of {arm.name} were stopped early and have no final "
            "score: a comparison needs a full grid.",
        )
    return None
