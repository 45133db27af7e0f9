"""The torch-free engine with a fault of its own: LoRA runs of seed 1 end with an odd score."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from typing import Any

from study.train.engine import NextRun, Outcome, RunSpec, Sink
from tests import engine_double

SCORES: dict[str, Any] = {
    "nan": float("nan"),
    "inf": float("inf"),
    "tuple": (0.5, 0.6),
    "object": object(),
}


class OddSink:
    """Passes everything on, the outcome of a chosen run with another score."""

    def __init__(self, sink: Sink, odd: set[str]) -> None:
        self._sink, self._odd = sink, odd

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sink, name)

    def ended(self, outcome: Outcome) -> None:
        if outcome.run_id in self._odd:
            score = SCORES[os.environ["ODD_SCORE"]]
            outcome = dataclasses.replace(outcome, score_final=score)
        self._sink.ended(outcome)


def train(runs: Sequence[RunSpec], sink: Sink, next_run: NextRun) -> None:
    odd = {r.run_id for r in runs if r.config.seed == 1 and r.config.method.name == "lora"}
    engine_double.train(runs, OddSink(sink, odd), next_run)
