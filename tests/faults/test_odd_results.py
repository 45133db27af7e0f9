"""An engine that measures what is no number: no result, no end of the sweep, nothing infinite."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from optuna.trial import TrialState

from study.sweep.claims.storage import Storage
from study.sweep.schedule import read_state
from study.sweep.work.worker import Worker
from tests.faults.tally import look
from tests.sums import TALLY
from tests.unit.sweep.workers import prepared

ODD = {"trl": "tests.faults.odd_engine"}


@pytest.mark.timeout(120)
@pytest.mark.parametrize("score", ["nan", "inf", "tuple", "object"])
def test_a_score_that_is_no_finite_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, score: str
) -> None:
    monkeypatch.setenv("ODD_SCORE", score)
    store = prepared(tmp_path / "toy")
    Worker(store, 60.0, engines=ODD).work()
    TALLY.injections += 1
    state = read_state(store)
    odd = {r.run_id for r in state.plan.cells("lora-r1", "search") if r.seed == 1}
    assert state.given_up == odd and not state.open_runs
    assert len(state.records) == 9 + 2  # the other search runs, and full's report runs
    for run_id in odd:
        (path,) = store.path.glob(f"*/{run_id}/attempts.jsonl")
        tries = [json.loads(line) for line in path.read_text().splitlines()]
        assert {t["status"] for t in tries} == {"failed"} and all(t["reason"] for t in tries)
    ended = [t for trials in look(Storage(store)).ended.values() for t in trials]
    values = [t.value for t in ended if t.state is TrialState.COMPLETE]
    assert len(values) == 11 and all(math.isfinite(v) for v in values if v is not None)
