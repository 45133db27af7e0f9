"""Who is in the figures of a sweep: arms by setting (a panel each) and series (a look each).

Arms that differ in the method alone are series of one panel. Where a sweep varies the model, the
task, the batch or anything else besides, each such setting gets a panel of its own, and a method
looks the same in all of them: eighteen models at four ranks are eighteen panels of four lines.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from analysis.claims.groups import settings
from analysis.figures.style import Look, looks
from analysis.reading.arms import Arm, arms, model_name, subject, task_name
from analysis.reading.sweep import Sweep
from study.plan.arms import is_factor

MODEL = "model.name"
BATCH, TARGETS = "objective.prompts_per_step", "method.target_modules"
MAX_SERIES = 16
"""Lines in one panel; more than that are split over panels."""
FEW_NAMES = 6
"""Names that a caption lists; of more it gives the number."""
SCORES = {
    "eval/accuracy": "held-out accuracy, sampled",
    "eval/greedy_accuracy": "held-out accuracy, greedy",
}


@dataclass(frozen=True)
class Member:
    """One arm with what tells it from the others."""

    arm: Arm
    series: str
    """What it is called in a legend: its name, or its method where there are several settings."""
    factors: tuple[tuple[str, Any], ...]
    """Settings besides the method in which arms of the sweep differ."""
    part: str = ""
    """Part of a setting with too many arms for one panel."""

    def setting(self, without: Collection[str] = ()) -> str:
        """The settings in words, but for those named; empty where nothing else differs."""
        words = [_words(k, v) for k, v in self.factors if k not in without]
        return ", ".join(filter(None, [*words, self.part]))


@dataclass(frozen=True)
class Cast:
    """The arms of a sweep as every figure shows them."""

    subject: str
    """Model and task, and how far the sweep is."""
    members: tuple[Member, ...]
    """FullFT first, then by rank."""
    score_label: str
    """Of the axis of scores; says so where lower is better."""
    lower_is_better: bool

    @cached_property
    def by_name(self) -> dict[str, Member]:
        """Members by arm."""
        return {member.arm.name: member for member in self.members}

    @cached_property
    def settings(self) -> tuple[str, ...]:
        """Titles of the panels in order; one empty title where there is one setting."""
        return self.settings_without(())

    def settings_without(self, keys: Collection[str]) -> tuple[str, ...]:
        """The settings that are left when these keys make no difference."""
        return tuple(sorted({member.setting(keys) for member in self.members}, key=natural))

    def settings_of(self, arms: Iterable[str], without: Collection[str] = ()) -> tuple[str, ...]:
        """The settings that some of these arms are in: panels that have something to show."""
        found = {self.by_name[name].setting(without) for name in arms}
        return tuple(name for name in self.settings_without(without) if name in found)

    def left_out(self, arms: Iterable[str], without: Collection[str] = ()) -> str:
        """For a caption, the settings that have no panel, none of these arms being in them."""
        shown = self.settings_of(arms, without)
        bare = [name for name in self.settings_without(without) if name not in shown]
        return f" Left out, with nothing to show: {_listed(bare)}." if shown and bare else ""

    def unshown(self, arms: Iterable[str], what: str) -> str:
        """For a caption, who lacks ``what``: settings as a whole, else arms that are not these."""
        names = set(arms)
        shown = self.settings_of(names)
        bare = [setting for setting in self.settings if setting not in shown]
        absent = [m for m in self.members if m.arm.name not in names and m.setting() in shown]
        lacking = [*bare, *(m.arm.name for m in absent)]
        return f" Left out, without {what}: {_listed(lacking)}." if shown and lacking else ""

    @cached_property
    def series(self) -> tuple[str, ...]:
        """Names in the legend, FullFT first."""
        return tuple(dict.fromkeys(member.series for member in self.members))

    @cached_property
    def looks(self) -> dict[str, Look]:
        """Look by arm; the arms of one series look alike."""
        full = [member.series for member in self.members if member.arm.is_full]
        found = looks(self.series, full)
        return {member.arm.name: found[member.series] for member in self.members}

    def look(self, series: str) -> Look:
        """Look of a series."""
        return next(self.looks[m.arm.name] for m in self.members if m.series == series)


def _listed(names: Sequence[str]) -> str:
    """Names for a caption, the first few of many."""
    more = f" and {len(names) - FEW_NAMES} more" if len(names) > FEW_NAMES else ""
    return "; ".join(names[:FEW_NAMES]) + more


def cast(sweep: Sweep) -> Cast:
    """Sort the arms of a sweep into panels and series."""
    found = arms(sweep)
    flat = settings(sweep)
    differing = _differing(flat)
    method_keys = [key for key in differing if is_factor(key, ["method"])]
    setting_keys = _without_echoes([k for k in differing if k not in method_keys], flat)
    short = _short_names({values.get(MODEL) for values in flat.values()})
    factors = {
        name: tuple((k, short.get(values.get(k), values.get(k))) for k in setting_keys)
        for name, values in flat.items()
    }
    several = len({repr(f) for f in factors.values()}) > 1
    members = [Member(arm, arm.name, factors[arm.name]) for arm in found]
    if several:
        members = _named_by_method(members, flat, method_keys)
    lower = sweep.direction == "minimize"
    return Cast(_subject(sweep), _parted(members), _score_label(sweep, lower), lower)


def _short_names(models: Collection[Any]) -> dict[Any, str]:
    """Names of models without their vendors, where that leaves them apart."""
    names = {model: str(model).rsplit("/", 1)[-1] for model in models if model is not None}
    return names if len(set(names.values())) == len(names) else {}


def natural(text: str) -> list[tuple[int, float, str]]:
    """Sorting key that puts ``lab64`` before ``lab128``."""
    pieces = re.split(r"(\d+)", text)
    return [(0, float(p), "") if p.isdigit() else (1, 0.0, p) for p in pieces if p]


def _score_label(sweep: Sweep, lower: bool) -> str:
    metric = sweep.score_metric
    label = SCORES.get(metric, metric.replace("/", " ").replace("_", " "))
    label = re.sub(r"\bnll\b", "NLL", label)
    if sweep.imported:
        label = label.removesuffix(", sampled")  # how others decoded is not known
    return f"{label} (lower is better)" if lower else label


def _subject(sweep: Sweep) -> str:
    """As :func:`analysis.reading.arms.subject`, with many models or tasks counted."""
    text = subject(sweep)
    for labels, noun in ((model_name(sweep), "models"), (task_name(sweep), "tasks")):
        n = labels.count(" / ") + 1
        if n > 2:
            text = text.replace(labels, f"{n} {noun}")
    return text


def _differing(flat: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Keys of which arms have different values; of the method, among the arms that have it."""
    found = []
    for key in dict.fromkeys(key for values in flat.values() for key in values):
        own = {repr(values[key]) for values in flat.values() if key in values}
        lacking = any(key not in values for values in flat.values())
        if len(own) + (lacking and not is_factor(key, ["method"])) > 1:
            found.append(key)
    return found


def _without_echoes(keys: list[str], flat: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Keys that tell arms apart as an earlier key does (a model's name and its path) go."""
    kept: dict[str, str] = {}
    for key in sorted(keys, key=lambda k: not k.endswith(".name")):
        values = [repr(flat[name].get(key)) for name in flat]
        kept.setdefault(repr([values.index(value) for value in values]), key)
    return [key for key in keys if key in kept.values()]


def _named_by_method(
    members: list[Member], flat: Mapping[str, Mapping[str, Any]], keys: list[str]
) -> list[Member]:
    named = []
    for member in members:
        values = flat[member.arm.name]
        words = [_words(k, values[k]) for k in keys if k in values and k not in _SAID]
        method = "FullFT" if member.arm.is_full else f"LoRA r={member.arm.rank}"
        if not member.arm.is_full and member.arm.rank is None:
            method = member.arm.name
        named.append(Member(member.arm, ", ".join([method, *words]), member.factors))
    cells = [(member.series, member.factors) for member in named]
    # Two arms of one method and setting: only their names tell them apart.
    return [named[i] if cells.count(cells[i]) == 1 else members[i] for i in range(len(members))]


_SAID = ("method.name", "method.rank")


def _parted(members: list[Member]) -> tuple[Member, ...]:
    by_setting: dict[str, list[str]] = {}
    for member in members:
        by_setting.setdefault(member.setting(), []).append(member.arm.name)
    parted = []
    for member in members:
        mates = by_setting[member.setting()]
        first = mates.index(member.arm.name) // MAX_SERIES * MAX_SERIES
        last = min(first + MAX_SERIES, len(mates))
        part = f"arms {first + 1} to {last}" if len(mates) > MAX_SERIES else ""
        parted.append(Member(member.arm, member.series, member.factors, part))
    return tuple(parted)


def _words(key: str, value: Any) -> str:
    if value is None:
        return ""
    text = target_text(value)
    if key == BATCH:
        return f"{text} prompts per step"
    if key.endswith(".name") or key in (TARGETS, "task.family", "task.dataset"):
        return text
    return f"{key.split('.')[-1].replace('_', ' ')} {text}"


def target_text(value: Any) -> str:
    """A setting in words; of layers the preset, or the names joined by plus signs."""
    return "+".join(map(str, value)) if isinstance(value, list) else str(value)
