"""A plan in small portions, kept as attributes of a study: writing a grown one costs what is new.

A joint search grows at every trial; written whole each time, the plan of a thousand trials would
fill a journal with gigabytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

RUNS_EACH = 100
"""Runs in a portion; all portions but the last are full and never change."""
ARM_GROUPS = ("arms", "reserve")


def portions(content: Mapping[str, Any]) -> dict[str, Any]:
    """Divide what ``plan.json`` holds.

    Returns:
        Attributes by name, to be written in this order: one for each arm, one for each
        :data:`RUNS_EACH` runs, and ``plan``, which says how many of them count.
    """
    arms = {name: arm for group in ARM_GROUPS for name, arm in content.get(group, {}).items()}
    runs = content["runs"]
    chunks = range(0, len(runs), RUNS_EACH)
    names = {group: list(content.get(group, {})) for group in ARM_GROUPS}
    return {
        **{f"arm:{name}": arm for name, arm in arms.items()},
        **{f"runs:{at // RUNS_EACH}": runs[at : at + RUNS_EACH] for at in chunks},
        "plan": {**content, **names, "runs": len(runs)},
    }


def whole(attributes: Mapping[str, Any]) -> Any:
    """The content that :func:`portions` divided.

    A plan that is being written is read as it was before: what ``plan`` does not count is left
    out.

    Returns:
        What ``plan.json`` holds; what others have written under ``plan`` comes back as it is.
    """
    head = attributes["plan"]
    if not isinstance(head, Mapping) or not isinstance(head.get("runs"), int):
        return head
    count = head["runs"]
    chunks = [attributes[f"runs:{k}"] for k in range(-(-count // RUNS_EACH))]
    arms = {group: {n: attributes[f"arm:{n}"] for n in head[group]} for group in ARM_GROUPS}
    return {**head, **arms, "runs": [run for chunk in chunks for run in chunk][:count]}
