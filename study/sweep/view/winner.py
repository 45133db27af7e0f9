"""What a joint search ends with: the best setting, how good it is, and how to have it again."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from rich.console import Console

from study.config import with_cell
from study.plan import best
from study.plan.best import CONFIDENCE, Winner, simultaneous
from study.records.store import ExperimentStore, remove, write_json, write_text
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
    """Print the winner of a finished joint search, and write ``best.json`` and ``best/<arm>/``."""
    if state.plan.experiment.best is None:
        return
    found = best.winner(state.plan, state.records, state.given_up)
    if found is None:
        return
    chosen = max(found.scores, key=lambda run_id: found.scores[run_id])
    seed = state.plan.run(chosen).seed
    again = command(with_cell(state.plan.arms[found.arm].config, found.learning_rate, seed))
    kept = _keep(store, found, chosen, again)
    write_json(store.path / "best.json", as_json(found, state, chosen, again))
    console.print(f"best setting: {found.arm} at learning rate {found.learning_rate:g}")
    console.print(score_line(found), soft_wrap=True, highlight=False)
    console.print(f"its best run again: {again}", soft_wrap=True, highlight=False, markup=False)
    if kept is not None:
        console.print(f"its weights, and how to load them: {kept}", soft_wrap=True)


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


def _keep(store: ExperimentStore, found: Winner, run_id: str, again: str) -> Path | None:
    """Copy the weights of the winner's best run to ``best/<arm>/``; None if none were kept."""
    source = store.run_dir(found.arm, run_id)
    name = next((name for name in LOADING if (source / name).exists()), None)
    if name is None:
        return None
    target = store.path / "best" / found.arm
    remove(store.path / "best")
    shutil.copytree(source / name, target / name)
    write_text(target / "command.sh", f"{again}\n")
    write_text(target / "load.py", LOADING[name].format(path=str(target.absolute() / name)))
    return target
