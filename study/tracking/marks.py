"""What has been mirrored: a small file for each run, beside W&B's own."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from study.records.files import write_json
from study.records.store import ExperimentStore, now


@dataclass(frozen=True, kw_only=True)
class Mark:
    """One run of the mirror."""

    run_id: str
    rows: int
    directory: str
    """Of W&B's file, below ``wandb/``."""
    uploaded: str | None = None
    """When W&B had all of it; None: not yet."""


class Marks:
    """The marks of one experiment."""

    def __init__(self, store: ExperimentStore) -> None:
        self.wandb_dir = store.path / "wandb"
        self._marks_dir = self.wandb_dir / "mirrored"
        read = [Mark(**json.loads(f.read_text())) for f in sorted(self._marks_dir.glob("*.json"))]
        self.by_run = {mark.run_id: mark for mark in read if mark.uploaded or self.exists(mark)}
        """Runs whose file is complete and there, or is no longer needed."""

    def exists(self, mark: Mark) -> bool:
        """Whether W&B's file of the run is there."""
        return any((self.wandb_dir / mark.directory).glob("run-*.wandb"))

    def add(self, mark: Mark) -> None:
        """Note a run whose file is complete."""
        write_json(self._marks_dir / f"{mark.run_id}.json", asdict(mark))
        self.by_run[mark.run_id] = mark

    def to_upload(self) -> list[Mark]:
        """Complete files that W&B does not have."""
        return [mark for mark in self.by_run.values() if mark.uploaded is None]

    def note_uploads(self) -> int:
        """Note what ``wandb sync`` says it has uploaded whole.

        Returns:
            How many runs that are.
        """
        done = [mark for mark in self.to_upload() if self._synced(mark)]
        for mark in done:
            self.add(replace(mark, uploaded=now()))
        return len(done)

    def _synced(self, mark: Mark) -> bool:
        return any((self.wandb_dir / mark.directory).glob("run-*.wandb.synced"))

    def prune(self) -> int:
        """Remove W&B's files of runs that it has; the store can make them again.

        Returns:
            How many were removed.
        """
        found = [mark for mark in self.by_run.values() if mark.uploaded and self.exists(mark)]
        for mark in found:
            shutil.rmtree(self.wandb_dir / mark.directory)
        return len(found)

    def remove_unfinished(self, experiment: str) -> None:
        """Remove files that a mirror left open when it was killed; call under the mirror's lock."""
        whole = {mark.directory for mark in self.by_run.values()}
        for directory in self.wandb_dir.glob(f"offline-run-*-{experiment}-*"):
            if directory.name not in whole:
                shutil.rmtree(directory, ignore_errors=True)


def mirror_lock(store: ExperimentStore) -> Path:
    """The lock of whoever mirrors the experiment."""
    return store.path / "wandb" / "mirror.lock"
