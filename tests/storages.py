"""An experiment directory written into an Optuna storage as the sweep keeps it there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import optuna
from optuna.distributions import FloatDistribution
from optuna.storages import BaseStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import TrialState, create_trial

from study.plan.portions import portions
from study.records.location import sqlalchemy_url

STATES = {"completed": TrialState.COMPLETE, "diverged": TrialState.COMPLETE,
          "pruned": TrialState.PRUNED, "no_signal": TrialState.FAIL}  # fmt: skip


def open_writable(url: str) -> BaseStorage:
    """A storage that tests may fill; it is made if it is not there."""
    if url.startswith("journal:"):
        return JournalStorage(JournalFileBackend(url.removeprefix("journal:")))
    return RDBStorage(sqlalchemy_url(url))


def store_experiment(directory: Path, url: str) -> str:
    """Write plan, selections, records, failed attempts and accuracies of an experiment.

    Returns:
        ``url``.
    """
    storage = open_writable(url)
    plan = json.loads((directory / "plan.json").read_text())
    name = plan["experiment"]["name"]
    studies: dict[tuple[str, str], optuna.Study] = {}
    for run in plan["runs"]:
        key = run["arm"], run["phase"]
        if key not in studies:
            studies[key] = _study(storage, name, *key)
        place = directory / run["arm"] / run["run_id"]
        for line in _lines(place / "attempts.jsonl"):
            studies[key].add_trial(_failed(run, line))
        if (place / "record.json").exists():
            record = json.loads((place / "record.json").read_text())
            studies[key].add_trial(_recorded(run, record, _lines(place / "metrics.jsonl")))
    held = optuna.create_study(study_name=f"{name}/plan", storage=storage)
    files = sorted((directory / "selection").glob("*.json"))
    held.set_user_attr("selections", {f.stem: json.loads(f.read_text()) for f in files})
    for key, value in portions(plan).items():
        held.set_user_attr(key, value)
    storage.remove_session()
    return url


def _study(storage: BaseStorage, name: str, arm: str, phase: str) -> optuna.Study:
    optuna_study = optuna.create_study(
        study_name=f"{name}/{arm}/{phase}", storage=storage, direction="maximize"
    )
    for key, value in {"experiment": name, "arm": arm, "phase": phase}.items():
        optuna_study.set_user_attr(key, value)
    return optuna_study


def _trial(run: dict[str, Any], state: TrialState, **facts: Any) -> optuna.trial.FrozenTrial:
    rate = run["learning_rate"]
    values = facts.pop("values", {})
    return create_trial(
        state=state,
        value=facts.pop("value", None),
        params={"learning_rate": rate},
        distributions={"learning_rate": FloatDistribution(rate / 10, rate * 10, log=True)},
        user_attrs={key: run[key] for key in ("run_id", "seed", "phase")} | facts,
        intermediate_values=values,
    )


def _recorded(
    run: dict[str, Any], record: dict[str, Any], lines: list[dict[str, Any]]
) -> optuna.trial.FrozenTrial:
    state = STATES[record["status"]]
    values = {line["step"]: line["eval/accuracy"] for line in lines if "eval/accuracy" in line}
    value = record["score_final"] if state == TrialState.COMPLETE else None
    return _trial(run, state, value=value, values=values, attempt=1, status=record["status"],
                  record=record)  # fmt: skip


def _failed(run: dict[str, Any], line: dict[str, Any]) -> optuna.trial.FrozenTrial:
    facts = {"status_reason": line["reason"], **{key: line[key] for key in line if key != "reason"}}
    return _trial(run, TrialState.FAIL, **facts)


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
