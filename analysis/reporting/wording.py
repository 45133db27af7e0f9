"""What a sweep is about and how far it reaches: the first lines of the page and the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from analysis.claims.verdict import Verdict
from analysis.reading.arms import count_text, model_name, task_name
from analysis.reading.sweep import Sweep
from analysis.reporting.imports import source_line

MAX_NAMED = 3
"""Models or tasks that the first line names one by one."""
CRITERIA = (
    "The criteria are this package's defaults, fixed before it saw the data; whoever ran the sweep "
    "did not declare them."
)

JOINT = (
    "A joint search: settings and learning rates were chosen together, from earlier scores. What "
    "stands is the score of the finalists on report seeds; curves and ratios are not estimated, "
    "and every verdict is undecided."
)
ABLATION = (
    "An ablation: one factor is changed at a time between two settings. It says what each change "
    "brings, and every verdict is undecided."
)
STOPPED = (
    "What stands is the selected learning rate and its score on report seeds; curves and ratios "
    "are not estimated, and every verdict is undecided."
)
GROWN = (
    "Grown in {looks} launches: intervals and verdicts hold for a plan that was made once. Where "
    "somebody read a report in between and let the experiment grow because of it, they claim too "
    "much (optional stopping)."
)
FROM_STORAGE = (
    "Rebuilt from an Optuna storage, which holds plan, selections, records, failed attempts and "
    "held-out accuracy over steps; training metrics, samples, evaluations and provenance files "
    "are on the disk of the sweep and unknown here."
)


def first_line(sweep: Sweep) -> str:
    """Whose data, which model, task and seeds; for a lab model, how far its verdicts reach."""
    parts = [_named("Model", model_name(sweep)), _named("task", task_name(sweep))]
    subject = ", ".join(part for part in parts if part)
    seeds = sweep.experiment["seeds"]
    search = count_text([len(seeds.get("search", []))], "search seed")
    report = count_text([len(seeds.get("report", []))], "report seed")
    if sweep.imported:
        about = f"{subject[:1].upper()}{subject[1:]}." if subject else ""
        return f"{source_line(sweep)} {about}".rstrip()
    line = f"{subject}, {search} and {report} per arm."
    if model_name(sweep).startswith("lab"):
        line += " A lab-scale verdict is a verdict about the lab model."
    return line


def _named(noun: str, labels: str) -> str:
    """``Model lab64``, or ``12 models`` where there are many; empty where none is known."""
    names = labels.split(" / ")
    if len(names) > MAX_NAMED:
        return f"{len(names)} {noun.lower()}s"
    return "" if labels == f"unnamed {noun.lower()}" else f"{noun} {labels}"


def banner(sweep: Sweep) -> str:
    """What is unfinished, stopped early, or not declared beforehand; empty if nothing."""
    parts = []
    if not sweep.complete:
        given_up = int((sweep.planned["status"] == "given up").sum())
        lost = f" ({given_up} without a result after failed attempts)" if given_up else ""
        parts.append(
            f"Unfinished: {len(sweep.runs)} of {sweep.expected} runs{lost}. What exists is drawn; "
            "every verdict is undecided."
        )
    if sweep.is_joint:
        parts.append(JOINT)
    if sweep.is_ablation:
        parts.append(ABLATION)
    if sweep.stops_early:
        statuses = sweep.planned["status"][sweep.planned["phase"] == "search"]
        pruned = int((statuses == "pruned").sum())
        parts.append(
            f"Early stopping: {pruned} of {len(statuses)} search runs were stopped early and have "
            "no score."
        )
        parts.append("" if sweep.is_joint else STOPPED)  # a joint search has said the like
    looks = int(sweep.plan["looks"])
    if looks > 1 and not sweep.imported:
        parts.append(GROWN.format(looks=looks))
    if sweep.storage is not None:
        parts.append(FROM_STORAGE)
    if sweep.imported:
        parts.append(CRITERIA)
    if sweep.kind == "adhoc":
        parts.append("An ad-hoc sweep: no criterion was declared, so it is drawn without verdicts.")
    if sweep.kind == "single":
        parts.append("A single run: drawn without verdicts.")
    return " ".join(filter(None, parts))


def verdict_lines(verdicts: Iterable[Verdict]) -> Iterator[str]:
    """Verdicts for the terminal: those of one claim with one reason share a line."""
    for (claim_id, verdict, reason), same in groupby(
        verdicts, key=lambda v: (v.claim_id, v.verdict, v.reason)
    ):
        names = "; ".join(", ".join(one.arms) for one in same)
        yield f"{claim_id} {verdict} [{names}]: {reason}"
