"""The command line that trains one run again, from its configuration alone."""

from __future__ import annotations

import shlex
from dataclasses import asdict

from study.compose import default_values
from study.config import RunConfig
from study.plan.arms import flatten

GROUPS = ("model", "method", "task", "objective")
"""Config groups that a run is composed of, each option named as its ``name``."""
NOT_REPEATED = "engine."
"""The engine changes no result, and each launch chooses its own."""


def command(config: RunConfig) -> str:
    """``python -m study ...`` with every key in which ``config`` differs from the defaults."""
    groups = [f"{group}={getattr(config, group).name}" for group in GROUPS]
    defaults = flatten(default_values(groups))
    changed = [
        f"{'' if key in defaults else '+'}{key}={_written(value)}"
        for key, value in flatten(asdict(config)).items()
        if not key.startswith(NOT_REPEATED) and (key not in defaults or value != defaults[key])
    ]
    return shlex.join(["python", "-m", "study", *groups, *changed])


def _written(value: object) -> str:
    """A value in the grammar of Hydra's overrides."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, list):
        return f"[{','.join(_written(item) for item in value)}]"
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace("'", "\\'")
        return value if value.replace("_", "").isalnum() else f"'{escaped}'"
    return str(value)
