"""What a sweep ends with: the best run of each arm, or the best setting of a joint search, how good
it is, and how to have it again.
"""

from __future__ import annotations

import shutil
import uuid
from pathlib import Path
from typing import Any

from rich.console import Console

from study.config import with_cell
from study.plan import best
from study.plan.best import CONFIDENCE, Winner, simultaneous
from study.records.files import remove, write_json, write_text
from study.records.store import ExperimentStore
from study.sweep.schedule import State
from study.sweep.view.repeat import command

LOADING = {
    "adapter": """from peft import AutoPeftModelForCausalLM
from transformers import AutoTokenizer
model = AutoPeftModelForCausalLM.from_pretrained({path!r})
tokenizer = AutoTokenizer.from_pretrained(model.peft_config["default"].base_model_name_or_path)
""",
    "model": """from transformers import AutoModelForCausalLM, AutoTokenizer
model = AutoModelForCausalLM.from_pretrained({path!r})
tokenizer = AutoTokenizer.from_pretrained({path!r})
""",
}
"""Lines that load what a run kept, by the folder it lies in."""


def announce(console: Console, state: State, store: ExperimentStore) -> None:
    """Keep and print what a finished sweep found.

    A joint search has a winner: ``best.json`` and ``best/<arm>/``. In any other experiment each arm
    that has reported has its ``best/<arm>/``.
    """
    if state.plan.experiment.best is None:
        _announce_arms(console, state, store)
        return
    found = best.winner(state.plan, state.records, state.given_up)
    if found is not None:
        _announce_winner(console, state, store, found)


def _announce_arms(console: Console, state: State, store: ExperimentStore) -> None:
    """Keep the weights of each arm's best report run, once no run of the arm is open."""
    finished = state.plan.arms.keys() - {run.arm for run in state.open_runs}
    kept: list[Path | None] = []
    for arm in sorted(finished & store.read_selections().keys()):
        chosen = _best_report_run(state, arm)
        if chosen is not None:
            kept.append(_keep(store, state, chosen))
    if any(kept):
        where = store.path / "best"
        text = f"weights of each arm's best report run, and how to load them: {where}"
        console.print(text, soft_wrap=True, highlight=False, markup=False)


def _best_report_run(state: State, arm: str) -> str | None:
    """The completed report run of best score (ties: the first); None if there is none."""
    scores: dict[str, float] = {}
    for run in state.plan.cells(arm, "report"):
        record = state.records.get(run.run_id)
        if record is not None and record.status == "completed":
            assert record.score_final is not None
            scores[run.run_id] = record.score_final
    return max(scores, key=lambda run_id: scores[run_id], default=None)


def _announce_winner(console: Console, state: State, store: ExperimentStore, found: Winner) -> None:
    chosen = max(found.scores, key=lambda run_id: found.scores[run_id])
    again = _command(state, chosen)
    for other in (store.path / "best").glob("*"):
        if other.name != found.arm:  # it won before the search went on
            remove(other)
    kept = _keep(store, state, chosen)
    write_json(store.path / "best.json", as_json(found, state, chosen, again))
    console.print(f"best setting: {found.arm} at learning rate {found.learning_rate:g}")
    console.print(score_line(found), soft_wrap=True, highlight=False)
    console.print(f"its best run again: {again}", soft_wrap=True, highlight=False, markup=False)
    if kept is not None:
        console.print(f"its weights, and how to load them: {kept}", soft_wrap=True)


def _command(state: State, run_id: str) -> str:
    run = state.plan.run(run_id)
    config = state.plan.arms[run.arm].config
    return command(with_cell(config, run.learning_rate, run.seed))


def score_line(found: Winner) -> str:
    """The winner's score, from what it was chosen, and what that does to the number."""
    text = f"held-out accuracy {found.mean:.3f} on {len(found.scores)} report seed"
    text += "s" if len(found.scores) > 1 else ""
    interval = simultaneous(list(found.scores.values()), found.finalists)
    if interval is not None:
        text += f", {CONFIDENCE:.0%} interval [{interval.low:.3f}, {interval.high:.3f}]"
    text += f": the best of {found.finalists} finalists of {found.trials} trials"
    if interval is None:
        return f"{text}; no interval from one seed, and the best of several is optimistic"
    return f"{text}; the interval allows for the choice among finalists, the mean does not"


def as_json(found: Winner, state: State, chosen: str, again: str) -> dict[str, Any]:
    """The content of ``best.json``."""
    interval = simultaneous(list(found.scores.values()), found.finalists)
    return {
        "arm": found.arm,
        "overrides": state.plan.experiment.arms[found.arm],
        "learning_rate": found.learning_rate,
        "report_mean": found.mean,
        "report_scores": found.scores,
        "interval": None if interval is None else [interval.low, interval.high],
        "confidence": CONFIDENCE,
        "search_mean": found.search_score,
        "best_of": {"finalists": found.finalists, "trials": found.trials},
        "run_id": chosen,
        "command": again,
    }


def _keep(store: ExperimentStore, state: State, run_id: str) -> Path | None:
    """Copy the weights of a run to ``best/<arm>/``, unless they are there already.

    Returns:
        The directory; None if the run kept no weights.
    """
    arm = state.plan.run(run_id).arm
    source, target = store.run_dir(arm, run_id), store.path / "best" / arm
    name = next((name for name in LOADING if (source / name).exists()), None)
    if name is None:
        remove(target)
        return None
    text, done = f"{_command(state, run_id)}\n", target / "command.sh"
    draft = None
    if not done.exists() or done.read_text() != text:
        draft = target.with_name(f".{arm}.{uuid.uuid4().hex}")
        shutil.copytree(source / name, draft / name)
        write_text(draft / "command.sh", text)
    with store.lock():  # another launch may end at the same moment
        if draft is not None:
            remove(target)
            draft.rename(target)
        write_text(target / "load.py", LOADING[name].format(path=str(target.absolute() / name)))
    return target
