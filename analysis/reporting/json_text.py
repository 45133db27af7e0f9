"""Verdicts, and anything else, as strict JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from analysis.claims.verdict import Verdict


def claims_json(found: Sequence[Verdict]) -> str:
    """Verdicts as a JSON list; numbers that are not finite become null."""
    return to_json([asdict(verdict) for verdict in found])


def to_json(value: Any) -> str:
    """Strict JSON: numbers that are not finite become null."""
    return json.dumps(_finite(value), indent=2, allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
