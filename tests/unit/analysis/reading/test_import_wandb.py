"""A W&B project: the map on a double of the API, the missing key on the real package."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from analysis.__main__ import main
from analysis.reading.load import load
from analysis.reading.sources import raw, wandb
from analysis.reading.sources.wandb import read_project
from analysis.simulate.store import rank_arms, write_experiment
from study.plan.experiment import from_json
from study.records.store import ExperimentStore
from study.tracking.content import SUMMARY, run_config


@dataclass
class FakeRun:
    """A run of ``wandb.Api().runs(...)`` that has ended.

    Guarantees: what the import reads of it, it reads of W&B's own class too (checked below);
    ``config`` and ``summary_metrics`` are nested plain dictionaries, and ``scan_history()`` yields
    every logged row with W&B's own ``_step`` beside it.
    """

    id: str
    config: dict[str, Any]
    summary_metrics: dict[str, Any]
    rows: list[dict[str, Any]] = field(default_factory=list)
    state: str = "finished"
    name: str | None = "a name"
    group: str | None = None

    def scan_history(self) -> Iterable[Mapping[str, Any]]:
        return ({**row, "_step": step} for step, row in enumerate(self.rows))


@dataclass
class FakeApi:
    """``wandb.Api`` of one project.

    Guarantees: ``runs`` is called with ``entity/project`` and ``lazy=False``, since lazy runs would
    ask for each one's settings singly.
    """

    found: list[FakeRun]

    def runs(self, path: str, *, lazy: bool) -> list[FakeRun]:
        assert (path, lazy) == ("team/project", False)
        return self.found


def imported_from(
    found: list[FakeRun], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *options: str
) -> int:
    def read(project: str, *, history: bool) -> raw.RawSweep:
        return read_project(FakeApi(found), project, history=history)

    monkeypatch.setattr(wandb, "read_wandb", read)
    return main(["import", "wandb:team/project", *options, "--out", str(tmp_path / "out")])


class Server:
    """Answers W&B's query for runs with one page of two, in the shape of its schema."""

    def execute_graphql(self, query: str, variables: dict[str, Any]) -> dict[str, Any]:
        assert "...RunFragment" in query and (variables["entity"], variables["project"]) == (
            "team",
            "project",
        )
        nodes = [self.node("a", "finished", 0.5), self.node("b", "crashed", "NaN")]
        page = {"endCursor": "2", "hasNextPage": False}
        edges = [{"node": node, "cursor": str(i)} for i, node in enumerate(nodes)]
        runs = {"edges": edges, "pageInfo": page}
        return {"project": {"internalId": "1", "runCount": 2, "readOnly": False, "runs": runs}}

    def node(self, name: str, state: str, accuracy: object) -> dict[str, Any]:
        config = {"opt": {"value": {"lr": 1e-3}, "desc": None}, "_wandb": {"value": {}}}
        summary = {"acc": accuracy, "eval": {"n": 8}}
        return {
            "id": "internal", "name": name, "displayName": "nice", "sweepName": None, "tags": [],
            "state": state, "group": "g", "config": json.dumps(config),
            "summaryMetrics": json.dumps(summary), "systemMetrics": "{}",
            "user": {"name": "me", "username": "me"},
        }  # fmt: skip


class ServedApi:
    """``wandb.Api`` without its log-in: W&B's own classes over :class:`Server`."""

    def runs(self, path: str, *, lazy: bool) -> Any:
        from wandb.apis.public import Runs

        return Runs(Server(), *path.split("/"), lazy=lazy)


def test_the_real_classes_are_read() -> None:
    frame = read_project(ServedApi(), "team/project", history=False).runs

    assert frame.to_dict("list") == {
        "id": ["a", "b"], "name": ["nice", "nice"], "state": ["finished", "crashed"],
        "group": ["g", "g"], "config.opt.lr": [1e-3, 1e-3], "summary.acc": [0.5, "NaN"],
        "summary.eval.n": [8, 8],
    }  # fmt: skip


def test_the_api_takes_what_it_is_given() -> None:
    """A history needs a server that streams it; its signature, and that of ``runs``, must do."""
    from wandb.apis.public import Api, Run

    assert "lazy" in inspect.signature(Api.runs).parameters
    scan = inspect.signature(Run.scan_history).parameters
    assert all(p.default is not p.empty for name, p in scan.items() if name != "self")


def our_sweep(path: Path) -> Path:
    """Two arms of four rates, two seeds, then two report seeds: 20 runs."""
    return write_experiment(path, rank_arms((8,), points=4), search_seeds=2, report_seeds=2)


def mirrored(path: Path) -> list[FakeRun]:
    """The runs of an experiment as ``study.tracking`` mirrors them."""
    store = ExperimentStore(path)
    plan = from_json(json.loads(store.plan_path.read_text()))
    found = []
    for planned in plan.runs:
        record = store.record(planned.arm, planned.run_id)
        assert record is not None
        lines = (store.run_dir(record.arm, record.run_id) / "metrics.jsonl").read_text()
        found.append(
            FakeRun(
                id=f"{plan.experiment.name}-{record.run_id}",
                config=run_config(plan, planned),
                summary_metrics={**{k: getattr(record, k) for k in SUMMARY}, "_step": 11},
                rows=[json.loads(line) for line in lines.splitlines()],
                group=plan.experiment.name,
            )
        )
    return found


def test_our_own_mirror_needs_no_map(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = our_sweep(tmp_path / "ours")
    assert imported_from(mirrored(path), tmp_path, monkeypatch) == 0
    sweep, ours = load(tmp_path / "out"), load(path)

    assert sweep.complete and sweep.score_metric == "eval/accuracy"
    assert sweep.plan["experiment"]["factors"] == ["method"]
    assert sweep.plan["experiment"]["seeds"] == ours.plan["experiment"]["seeds"]
    columns = ["arm", "phase", "method", "lora_rank", "lora_alpha", "alpha_rule", "learning_rate",
               "seed", "status", "score_final", "score_base", "score_greedy", "task", "model",
               "prompts_per_step", "steps_planned", "eval_prompts", "trainable_params"]  # fmt: skip
    found, own = (s.runs[columns].to_numpy().tolist() for s in (sweep, ours))
    assert str(found) == str(own)
    assert list(sweep.runs["run_id"]) == [f"ours-{run_id}" for run_id in ours.runs["run_id"]]
    one = ours.runs["run_id"].iloc[0]
    tables = (
        s.metrics[s.metrics["run_id"] == run_id].sort_values(["metric", "step"])
        for s, run_id in ((sweep, f"ours-{one}"), (ours, one))
    )
    found, own = (t[["step", "metric", "value"]].to_numpy().tolist() for t in tables)
    assert len(found) > 10 and found == own


THEIRS = [
    FakeRun("a", {"opt": {"lr": 1e-4}, "peft": {"r": 8}}, {"acc": 0.6},
            [{"acc": 0.1}, {"loss": 2.0}, {"acc": 0.6}]),
    FakeRun("b", {"opt": {"lr": 1e-3}, "peft": {"r": 8}}, {"acc": "NaN"}, [{"acc": 0.1}]),
    FakeRun("c", {"opt": {"lr": 1e-2}, "peft": {"r": 8}}, {}, [], state="crashed"),
]  # fmt: skip
THEIR_MAP = (
    "--map", "learning_rate=config.opt.lr,lora_rank=config.peft.r,score_final=summary.acc",
)  # fmt: skip


def test_a_project_of_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = (*THEIR_MAP, "--history-map", "eval/accuracy=acc", "--worst-score", "0")
    assert imported_from(THEIRS, tmp_path, monkeypatch, *options) == 0
    sweep = load(tmp_path / "out")

    assert list(sweep.runs["run_id"]) == ["a", "b"]
    assert list(sweep.runs["status"]) == ["completed", "diverged"]
    assert list(sweep.runs["score_final"]) == [0.6, 0.0]
    assert list(sweep.excluded["kind"]) == ["unfinished"]
    assert not sweep.complete
    assert sweep.metrics.to_numpy().tolist() == [
        ["a", 0, "eval/accuracy", 0.1],
        ["a", 2, "eval/accuracy", 0.6],
        ["b", 0, "eval/accuracy", 0.1],
    ]
    assert list(sweep.runs["score_base"]) == [0.1, 0.1]


def test_no_history_is_asked_for_where_none_is_wanted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: FakeRun) -> Iterable[Mapping[str, Any]]:
        raise AssertionError("a request a run")

    monkeypatch.setattr(FakeRun, "scan_history", refuse)
    assert imported_from(THEIRS, tmp_path, monkeypatch, *THEIR_MAP) == 0
    assert load(tmp_path / "out").metrics.empty


def test_a_mirror_that_broke_off_is_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = mirrored(our_sweep(tmp_path / "ours"))
    found[0].summary_metrics, found[0].rows = {}, []
    assert imported_from(found, tmp_path, monkeypatch) == 0
    sweep = load(tmp_path / "out")

    assert list(sweep.excluded["kind"]) == ["no score"]
    assert len(sweep.runs) == len(found) - 1 and not sweep.complete
    assert np.isfinite(sweep.runs["score_final"]).all()


def test_a_project_without_runs() -> None:
    with pytest.raises(ValueError, match="wandb:team/project has no run"):
        read_project(FakeApi([]), "team/project", history=False)


@pytest.mark.parametrize("project", ["", "team", "team/", "/p", "a/b/c"])
def test_what_is_no_project(
    project: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["import", f"wandb:{project}", "--out", str(tmp_path / "out")]) == 2
    assert f"a W&B source is wandb:ENTITY/PROJECT, got wandb:{project}" in capsys.readouterr().err


@pytest.mark.parametrize("netrc", [None, "machine example.org login a password b\n"])
def test_without_a_key_there_is_one_sentence_and_no_question(
    netrc: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.delenv("WANDB_API_KEY", raising=False)
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    if netrc is not None:
        (tmp_path / "netrc").write_text(netrc)
    assert main(["import", "wandb:team/project", "--out", str(tmp_path / "out")]) == 2
    assert capsys.readouterr().err == (
        "error: no W&B key for wandb:team/project: set WANDB_API_KEY, or log in by `wandb login`\n"
    )
