"""The advice for another program."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from analysis.advising.advice import Advice
from analysis.advising.own import OwnArm
from analysis.advising.published import Sourced
from analysis.advising.ranks import PUBLISHED
from analysis.comparing.as_json import quantity_json


def advice_json(found: Advice) -> str:
    """The advice as a JSON object: every number with its range, source and reason."""
    rates = found.rates
    return json.dumps(
        {
            "model": asdict(found.model),
            "sweeps": [own.sweep.origin for own in found.sweeps],
            "learning_rate": {
                "own": [_own(arm, carried) for arm, carried in rates.own],
                "published": [asdict(rule) for rule in rates.published],
                "chosen": asdict(rates.chosen),
                "chosen_why": rates.chosen_why,
                "disagreements": list(rates.disagreements),
            },
            "ratio": {
                "own": [
                    {"arm": arm.label, **quantity_json(arm.ratio)}
                    for arm, _ in rates.own
                    if arm.ratio is not None
                ],
                "published": [asdict(ratio) for ratio in found.ratios],
            },
            "rank": {
                "rank": found.ranks.rank if found.model.method == "lora" else None,
                "why": found.ranks.why,
                "own": [asdict(own) for own in found.ranks.own],
                "published": list(PUBLISHED),
            },
            "grid": asdict(rates.grid),
            "seeds": asdict(found.seeds),
            "overrides": asdict(found.paste),
            "notes": list(found.notes),
        },
        indent=2,
        allow_nan=False,
    )


def _own(arm: OwnArm, carried: Sourced | None) -> dict[str, Any]:
    return {
        "arm": arm.facts.name,
        "sweep": arm.own.sweep.origin,
        "rank": arm.facts.arm.rank,
        "hidden_size": arm.facts.hidden_size,
        "alpha": arm.facts.alpha,
        "supervised": arm.supervised,
        "measured": quantity_json(arm.rate),
        "carried_over": None if carried is None else asdict(carried),
    }
