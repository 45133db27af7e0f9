"""The W&B workspace and report, as they would be saved; no key and no network."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from study.records.store import ExperimentStore
from tests.unit.tracking.mirrors import environment, small_sweep
from tests.wandb_server import KEY


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> ExperimentStore:
    return small_sweep(tmp_path_factory.mktemp("pages") / "ranks")


@pytest.fixture(scope="module")
def spec(store: ExperimentStore) -> dict[str, Any]:
    done = built(store, "--spec")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def built(
    store: ExperimentStore, *arguments: str, **variables: str
) -> subprocess.CompletedProcess[str]:
    module = ["-m", "study.tracking.workspace", str(store.path), "--entity", "team"]
    return subprocess.run(
        [sys.executable, *module, *arguments],
        env=environment(WANDB_BASE_URL="http://127.0.0.1:9", **variables),
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )


def panels(value: Any) -> Iterator[dict[str, Any]]:
    """Every panel of a page, at whatever depth."""
    if isinstance(value, dict):
        if "viewType" in value:
            yield value
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from panels(item)


@pytest.mark.parametrize("page", ["workspace", "report"])
def test_a_page_shows_what_was_asked_for(spec: dict[str, Any], page: str) -> None:
    found = list(panels(spec[page]))
    kinds = [panel["viewType"] for panel in found]
    assert kinds == [
        "Scatter Plot", "Scatter Plot", "Bar Chart", "Run History Line Plot",
        "Run History Line Plot", "Parallel Coordinates Plot", "Parameter Importance",
    ]  # fmt: skip
    rank, rate, _, curve, _, parallel, importance = [panel["config"] for panel in found]
    assert (rank["xAxis"], rank["yAxis"], rank["xAxisLogScale"]) == (
        "config:lora_rank.value", "summary:score_final", True,
    )  # fmt: skip
    assert (rate["xAxis"], rate["yAxis"], rate["xAxisLogScale"]) == (
        "config:objective.value.learning_rate", "summary:score_final", True,
    )  # fmt: skip
    assert (curve["metrics"], curve["xAxis"], curve["groupBy"], curve["aggregate"]) == (
        ["eval/accuracy"], "step", "arm.value", True,
    )  # fmt: skip
    assert [column["accessor"] for column in parallel["columns"]] == [
        "config:method.value.name", "config:objective.value.learning_rate", "summary:score_final",
    ]  # fmt: skip
    assert importance["targetKey"] == "score_final"


def test_what_panels_read_is_what_the_mirror_writes(store: ExperimentStore) -> None:
    from study.sweep.schedule import read_state
    from study.tracking.content import SUMMARY, run_config

    state = read_state(store)
    config = run_config(state.plan, state.plan.runs[0])
    assert "score_final" in SUMMARY and "learning_rate" in config["objective"]
    assert {"lora_rank", "arm", "phase"} <= config.keys() and "name" in config["method"]
    rows = [json.loads(line) for line in next(store.path.rglob("metrics.jsonl")).open()]
    assert "step" in rows[0] and any("eval/accuracy" in row for row in rows)


def test_pages_hold_the_experiment_s_runs_alone(spec: dict[str, Any]) -> None:
    for page in ("workspace", "report"):
        text = json.dumps(spec[page])
        assert '"name": "group"' in text and '"value": "ranks"' in text
    assert '"value": "report"' in json.dumps(spec["report"])


def test_saving_without_a_key_is_refused_in_one_sentence(store: ExperimentStore) -> None:
    done = built(store)
    assert (done.returncode, done.stderr) == (
        2,
        "error: no W&B key for http://127.0.0.1:9: set WANDB_API_KEY, or log in by `wandb login`\n",
    )


def test_saving_without_a_network_is_refused_in_one_sentence(store: ExperimentStore) -> None:
    done = built(store, WANDB_API_KEY=KEY)
    assert (done.returncode, done.stderr) == (
        2, "error: W&B at http://127.0.0.1:9 does not answer; the pages can be made later\n",
    )  # fmt: skip


def test_pages_are_not_made_twice(store: ExperimentStore, tmp_path: Path) -> None:
    saved = store.path / "wandb" / "pages.json"
    saved.parent.mkdir(exist_ok=True)
    saved.write_text('{"workspace": "https://example.org/w"}')
    done = built(store)
    saved.unlink()
    assert done.returncode == 2
    assert done.stderr == (
        f"error: https://example.org/w are there already; remove {saved} to have new ones made\n"
    )
