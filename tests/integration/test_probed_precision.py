"""The same short run with float32 masters and in pure bfloat16: sparsity that rounding makes."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from train_runs import run_config, train

from study.config import ModelConfig, ProbesConfig
from study.plan.facts import run_facts
from study.probes.result import Prober
from study.probes.stored import StoredRun
from study.records.record import Record

pytestmark = pytest.mark.integration

STEPS = 12


def probed(dtype: str, path: Path) -> dict[str, float | None]:
    """Unchanged shares of all trained weights after a run of FullFT on lab32."""
    config = run_config("full", save="last", steps=STEPS, eval_every=STEPS)
    config = dataclasses.replace(
        config,
        model=ModelConfig(name="lab32", source="lab", dtype=dtype),
        probes=ProbesConfig(name="default", draws=2),
    )
    path.mkdir()
    outcome, _ = train(config, path)
    assert outcome.status == "completed"
    run = StoredRun(path, _record(config, outcome), config)
    Prober().probe_result(run, config.probes, lambda what, done: None)
    counts = json.loads((path / "probes.json").read_text())["weights"]["trained"]
    total = counts.pop("parameters")
    return {name: None if n is None else n / total for name, n in counts.items()}


def _record(config, outcome) -> Record:
    from study.train.describe import describe

    model = describe(config)
    known = {f.name: None for f in dataclasses.fields(Record)}
    facts = run_facts(config, model, [], model.total_params)
    return Record(**{**known, **facts, **dataclasses.asdict(outcome)})


def test_pure_bfloat16_leaves_weights_unchanged_that_float32_masters_move(tmp_path):
    """Adam moves every weight by about the rate, 2e-4, a step: bf16 numbers near 0.1 lie 5e-4
    apart, so that many stay where they are, and in float32 none does.
    """
    masters = probed("float32", tmp_path / "float32")
    pure = probed("bfloat16", tmp_path / "bfloat16")
    assert masters["fp32"] < 0.01
    assert pure["fp32"] is None
    assert pure["bf16"] > masters["bf16"] + 0.2 > 0.2
