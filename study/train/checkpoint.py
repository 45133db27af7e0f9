"""Keeps a run's weights on disk: a PEFT adapter, or a whole model."""

import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from study.config import LoraMethod, RunConfig


def kept_bytes(directory: Path) -> int:
    """Returns the size of the weights that a run has kept below its directory; 0 for none."""
    kept = (directory / name for name in ("adapter", "model"))
    return sum(file.stat().st_size for path in kept for file in path.glob("*.safetensors"))


class Keeper:
    """Writes the weights that `RunConfig.save` asks for, as safetensors, replacing older ones."""

    def __init__(
        self,
        config: RunConfig,
        directory: Path,
        tokenizer: Any,
        export: Callable[[], AbstractContextManager[Any]],
    ) -> None:
        """Builds the keeper.

        Args:
            config: The run.
            directory: The attempt's directory; ``adapter/`` or ``model/`` appears below it.
            tokenizer: Saved beside a whole model.
            export: Gives the run's present state as a model that can be saved.
        """
        self._export = export
        self._when = config.save
        self._adapter = isinstance(config.method, LoraMethod)
        self._path = directory / ("adapter" if self._adapter else "model")
        self._tokenizer = tokenizer
        self._best = float("-inf")

    def evaluated(self, accuracy: float) -> None:
        """Takes in an evaluation of a trained state; under ``best`` keeps it if it is the best."""
        if self._when == "best" and accuracy > self._best:
            self._best = accuracy
            self._write()

    def completed(self) -> None:
        """Takes in the last state of a run that was neither cut short nor diverged."""
        if self._when == "last":
            self._write()

    def _write(self) -> None:
        # Written aside first: what carries the final name is whole, even if the run is killed.
        draft = self._path.with_name(self._path.name + ".part")
        shutil.rmtree(draft, ignore_errors=True)
        with self._export() as model:
            if self._adapter:
                model.save_pretrained(str(draft), save_embedding_layers=False)
            else:
                model.save_pretrained(str(draft))
                self._tokenizer.save_pretrained(str(draft))
        shutil.rmtree(self._path, ignore_errors=True)
        draft.rename(self._path)
