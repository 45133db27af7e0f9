"""The base and the tuned model of a stored run, one after the other in memory."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from peft import PeftModel

from study.config import LoraMethod
from study.probes.stored import StoredRun, unmeasurable
from study.train.models import check_revision, load_model


def base_model(run: StoredRun) -> Any:
    """What a run started from, in evaluation mode.

    Raises:
        ValueError: If the model directory is not usable or has changed since.
    """
    check_revision(run.config.model, run.record.model_revision)
    return load_model(run.config.model).eval()


def tuned_model(run: StoredRun) -> Any:
    """What a run ended with, as it is stored.

    Raises:
        ValueError: If the run kept no weights, or they cannot be read.
    """
    if reason := unmeasurable(run):
        raise ValueError(f"{run.path} cannot be measured: {reason}")
    if isinstance(run.config.method, LoraMethod):
        return PeftModel.from_pretrained(base_model(run), str(run.weights)).eval()
    stored = replace(run.config.model, source="local", path=str(run.weights))
    return load_model(stored).eval()
