"""``python -m study.tracking.workspace runs/quickstart --entity TEAM``: W&B pages of a sweep.

A workspace and a report over the mirrored runs: reward against rank and learning rate, learning
curves by arm, parallel coordinates and parameter importance. ``--spec`` prints what would be saved
and needs neither key nor network.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

from study.cli import reporting_user_errors
from study.plan.experiment import Plan
from study.records.files import write_json
from study.records.store import ExperimentStore
from study.sweep.schedule import read_plan
from study.tracking.runlog import clean_environment
from study.tracking.upload import DEFAULT_URL, check_key, reachable


def specification(plan: Plan, entity: str, project: str) -> dict[str, Any]:
    """Both pages as W&B's server takes them.

    Raises:
        ValueError: if the optional packages are missing.
    """
    made = pages(plan, entity, project)
    return {
        name: json.loads(page._to_model().model_dump_json(by_alias=True, exclude_none=True))
        for name, page in made.items()
    }


def pages(plan: Plan, entity: str, project: str) -> dict[str, Any]:
    """The workspace and the report, not yet saved.

    Raises:
        ValueError: if the optional packages are missing.
    """
    try:
        from study.tracking.pages import report, workspace
    except ImportError:
        raise ValueError("W&B pages need: pip install -e '.[dashboards]'") from None
    return {
        "workspace": workspace(plan, entity, project),
        "report": report(plan, entity, project),
    }


def main(arguments: list[str] | None = None) -> None:
    """Build both pages, and save them."""
    parser = argparse.ArgumentParser(
        prog="python -m study.tracking.workspace",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("experiment", type=Path, help="an experiment's directory")
    parser.add_argument("--entity", required=True, help="W&B user or team")
    parser.add_argument("--project", default="lora-rl-study", help="W&B project")
    parser.add_argument("--spec", action="store_true", help="print the pages, save nothing")
    options = parser.parse_args(arguments)
    with reporting_user_errors():
        store = ExperimentStore(options.experiment)
        plan = read_plan(store)
        if options.spec:
            print(json.dumps(specification(plan, options.entity, options.project), indent=1))
        else:
            _save(store, plan, options.entity, options.project)


def _save(store: ExperimentStore, plan: Plan, entity: str, project: str) -> None:
    saved = store.path / "wandb" / "pages.json"
    if saved.exists():
        urls = ", ".join(json.loads(saved.read_text()).values())
        raise ValueError(f"{urls} are there already; remove {saved} to have new ones made")
    variables = clean_environment()
    url = variables.get("WANDB_BASE_URL", DEFAULT_URL)
    check_key(url, variables)
    if not reachable(url):
        raise ValueError(f"W&B at {url} does not answer; the pages can be made later")
    os.environ |= variables
    import wandb

    found = {}
    for name, page in pages(plan, entity, project).items():
        try:
            found[name] = str(page.save().url)
        except (wandb.errors.Error, OSError) as error:
            raise ValueError(f"W&B did not save the {name}: {error}") from error
        print(f"{name}: {found[name]}")
    write_json(saved, found)


if __name__ == "__main__":
    main()
