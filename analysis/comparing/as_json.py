"""A comparison for another program: every estimate with interval, n and the reason it lacks one."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from typing import Any

from analysis.comparing.experiments import ExperimentComparison
from analysis.comparing.facts import ArmFacts
from analysis.comparing.numbers import Quantity
from analysis.comparing.rows import ArmRow, Triple
from analysis.reading.arms import model_name, task_name
from analysis.reading.sweep import Sweep


def comparison_json(found: ExperimentComparison) -> str:
    """The comparison as a JSON object; numbers that are not finite become null."""
    return json.dumps(
        {
            "a": _experiment(found.a),
            "b": _experiment(found.b),
            "settings": [asdict(d) for d in found.settings],
            "origins": [asdict(d) for d in found.origins],
            "only_a": [_arm(facts) for facts in found.matching.only_a],
            "only_b": [_arm(facts) for facts in found.matching.only_b],
            "ambiguous": found.matching.ambiguous,
            "fraction": found.fraction,
            "not_subtracted": asdict(found.units),
            "arms": [_row(row) for row in found.rows],
            "verdicts": [asdict(verdict) for verdict in found.verdicts],
            "notes": list(found.notes),
        },
        indent=2,
        allow_nan=False,
    )


def _experiment(sweep: Sweep) -> dict[str, Any]:
    return {
        "path": sweep.origin,
        "name": sweep.name,
        "kind": sweep.kind,
        "model": model_name(sweep),
        "task": task_name(sweep),
        "seeds": sweep.experiment["seeds"],
        "runs": len(sweep.runs),
        "expected_runs": sweep.expected,
        "complete": sweep.complete,
        "direction": sweep.direction,
        "score_metric": sweep.score_metric,
    }


def _arm(facts: ArmFacts) -> dict[str, Any]:
    return {
        "name": facts.name,
        "method": facts.arm.method,
        "rank": facts.arm.rank,
        "target_modules": facts.targets,
        "prompts_per_step": facts.batch,
        "alpha": facts.alpha,
        "hidden_size": facts.hidden_size,
    }


def _row(row: ArmRow) -> dict[str, Any]:
    return {
        "a": _arm(row.pair.a),
        "b": _arm(row.pair.b),
        "score": _triple(row.score, "difference")
        | {"from_a": row.score_from[0], "from_b": row.score_from[1]},
        "gain": _triple(row.gain, "difference"),
        "learning_rate": _triple(row.rate, "ratio")
        | {
            "ramp_ratio": quantity_json(row.flanks.ramp),
            "cliff_ratio": quantity_json(row.flanks.cliff),
            "shape_differs": row.flanks.shape_differs,
        },
        "over_full": row.over_full and _triple(row.over_full, "ratio_of_ratios"),
        "gap_to_full": row.gap and _triple(row.gap, "difference") | {"margin": row.gap_margin},
    }


def _triple(triple: Triple, between: str) -> dict[str, Any]:
    return {
        "a": quantity_json(triple.a),
        "b": quantity_json(triple.b),
        between: quantity_json(triple.between),
    }


def quantity_json(quantity: Quantity) -> dict[str, Any]:
    """One number: point, interval, n, level, and why it lacks an interval or is a bound."""
    estimate = quantity.estimate
    known = estimate is not None and math.isfinite(estimate.point)
    return {
        "point": estimate.point if estimate is not None and known else None,
        "interval": quantity.interval,
        "n": 0 if estimate is None else estimate.n,
        "confidence": None if estimate is None else estimate.confidence,
        "bound": quantity.bound,
        "reason": quantity.reason,
    }
