"""Keeps the libraries quiet: what they print is about themselves, not about the run."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from huggingface_hub import constants as hub_constants
from transformers.utils import logging


@contextmanager
def quiet_libraries() -> Iterator[None]:
    """Turns off progress bars, telemetry and the libraries' deprecation notices to each other.

    TRL reports every trainer it builds to its makers, unless telemetry is off.
    """
    hub_constants.HF_HUB_DISABLE_TELEMETRY = True
    logging.disable_progress_bar()
    with warnings.catch_warnings():
        for library in ("transformers", "trl", "peft", "accelerate"):
            warnings.filterwarnings("ignore", category=FutureWarning, module=library)
        yield
