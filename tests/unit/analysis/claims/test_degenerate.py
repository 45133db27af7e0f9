"""Sweeps with nothing, or nothing sound, in them get an explanation from every claim."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from analysis.claims import check_claims, claims, not_addressed
from analysis.reading.sweep import Sweep
from tests.unit.analysis.claims import (
    test_alpha,
    test_batch,
    test_layers,
    test_precision,
    test_short_run,
    test_width,
)
from tests.unit.analysis.simulated_sweeps import experiment

WORLDS: dict[str, Callable[[], Sweep]] = {
    "alpha": lambda: test_alpha.sweep(-1),
    "batch": lambda: test_batch.sweep({1: (0.0,) * 4, 8: (0.0, 0.03, 0.06, 0.09)}),
    "layers": test_layers.sweep,
    "precision": lambda: test_precision.sweep(3.0),
    "short run": lambda: test_short_run.sweep(-0.6),
    "width": lambda: test_width.sweep(0.5),
}
DEFECTS: dict[str, Callable[[pd.DataFrame], pd.DataFrame]] = {
    "no runs": lambda runs: runs.iloc[:0],
    "one run": lambda runs: runs.iloc[:1],
    "every other run": lambda runs: runs.iloc[::2],
    "no scores": lambda runs: runs.assign(score_final=np.nan),
    "all scores equal": lambda runs: runs.assign(score_final=0.5),
}


@pytest.mark.parametrize("kind", ["experiment", "imported"])
@pytest.mark.parametrize("defect", DEFECTS)
@pytest.mark.parametrize("world", WORLDS)
def test_every_claim_explains_itself(world: str, defect: str, kind: str) -> None:
    sound = WORLDS[world]()
    plan = {**sound.plan, "experiment": {**sound.plan["experiment"], "kind": kind}}
    metrics = sound.metrics.iloc[:0]  # a score that disagrees with its evaluations is no defect
    sweep = replace(sound, plan=plan, runs=DEFECTS[defect](sound.runs), metrics=metrics)
    found = check_claims(sweep)
    assert found
    assert len({v.claim_id for v in found}) + len(not_addressed(sweep)) == len(claims())
    for verdict in found:
        assert verdict.verdict == "undecided", verdict
        assert verdict.reason.endswith(".") and verdict.missing
        assert verdict.interval is None
        assert verdict.unit


def test_an_empty_imported_sweep_says_what_every_claim_needs() -> None:
    sweep = experiment({"full": test_layers.search("full")}, kind="imported")
    assert check_claims(sweep) == []
    assert all(lack for _, lack in not_addressed(sweep))
