"""One run as W&B writes it: opened while it trains or afterwards, closed when its record is there.

Written in mode ``offline``: nothing here knows of a network or a key.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from pathlib import Path
from typing import Any

from study.plan.experiment import Plan, PlannedRun
from study.records.record import Record
from study.records.store import ExperimentStore
from study.tracking.content import SUMMARY, labels, row, run_config, tags
from study.tracking.transactions import rows_of_ended

KEPT_VARIABLES = (
    "WANDB_BASE_URL",
    "WANDB_CACHE_DIR",
    "WANDB_CONFIG_DIR",
    "WANDB_CREDENTIALS_FILE",
    "WANDB_DATA_DIR",
    "WANDB_ENTITY",
    "WANDB_IDENTITY_TOKEN_FILE",
    "WANDB_INSECURE_DISABLE_SSL",
)
"""Variables that say where W&B is; those that describe a run would overrule the mirror."""
END_WRITTEN_S = 30.0
"""W&B's own process completes a file a moment after ``finish``."""


def clean_environment() -> dict[str, str]:
    """Take W&B's variables out of this process, but :data:`KEPT_VARIABLES`.

    ``WANDB_RUN_ID`` alone would make all runs one, whatever id ``wandb.init`` is given.

    Returns:
        What uploads need: the variables kept, and the key, which this process does without.
    """
    found = {k: v for k, v in os.environ.items() if k.startswith("WANDB_")}
    for name in found.keys() - set(KEPT_VARIABLES):
        del os.environ[name]
    return {k: v for k, v in found.items() if k in (*KEPT_VARIABLES, "WANDB_API_KEY")}


class RunLog:
    """An open W&B run."""

    def __init__(self, store: ExperimentStore, plan: Plan, run: PlannedRun, project: str) -> None:
        """Opens it.

        Raises:
            RuntimeError: if W&B returns another run than the one asked for.
        """
        import wandb  # a second of import that --help need not pay

        self.plan, self.run, self.source = plan, run, Path()
        self._wandb_run: Any = wandb.init(
            **labels(plan, run),
            project=project,
            config=run_config(plan, run),
            dir=str(store.path),
            mode="offline",
            reinit="create_new",
            settings=_settings(wandb),
        )
        self.directory = Path(self._wandb_run.dir).parent
        self.rows, self._read, self._seen = 0, 0, hashlib.sha256()
        wanted = labels(plan, run)["id"]
        if self._wandb_run.id != wanted:
            raise RuntimeError(f"W&B opened run {self._wandb_run.id!r} instead of {wanted!r}")
        # W&B's own step must never go back and would drop rows; ours is an ordinary column.
        self._wandb_run.define_metric("step")
        self._wandb_run.define_metric("*", step_metric="step")

    def follow(self, metrics: Path) -> None:
        """Log the complete lines of ``metrics.jsonl`` that were not logged before."""
        self.source = metrics
        with metrics.open("rb") as file:
            file.seek(self._read)
            for line in file:
                if not line.endswith(b"\n"):
                    break
                self._wandb_run.log(row(line))
                self.rows += 1
                self._read += len(line)
                self._seen.update(line)

    def began(self, metrics: Path) -> bool:
        """Whether what was logged so far is how ``metrics`` begins."""
        with metrics.open("rb") as file:
            return hashlib.sha256(file.read(self._read)).digest() == self._seen.digest()

    def end(self, record: Record) -> None:
        """Add the record's summary, close the run and see that its file holds every row.

        Raises:
            RuntimeError: if it does not.
        """
        for key in SUMMARY:
            self._wandb_run.summary[key] = getattr(record, key)
        self._wandb_run.tags = tags(self.plan, self.run, record)
        self._wandb_run.finish()
        (file,) = self.directory.glob("run-*.wandb")
        until = time.monotonic() + END_WRITTEN_S
        while (written := rows_of_ended(file)) is None and time.monotonic() < until:
            time.sleep(0.02)
        if written != self.rows:
            raise RuntimeError(f"{file} holds {written} rows of {self.rows}")

    def discard(self) -> None:
        """Close the run and remove its file: its attempt came to nothing."""
        self._wandb_run.finish(exit_code=1)
        shutil.rmtree(self.directory, ignore_errors=True)


def _settings(wandb: Any) -> Any:
    """The process is the mirror: its machine, output, code and packages are not the run's."""
    return wandb.Settings(
        host="-",
        console="off",
        silent=True,
        disable_git=True,
        save_code=False,
        x_disable_machine_info=True,
        x_disable_meta=True,
        x_disable_stats=True,
        x_save_requirements=False,
    )
