"""Where an experiment is: a directory, or the URL of an Optuna storage."""

from __future__ import annotations

import re
from pathlib import Path

STORAGE = re.compile(r"journal:|[A-Za-z][\w+.-]*:/")
"""How the URL of a storage begins, right or not: what does is no directory."""


def is_storage(place: Path | str) -> bool:
    """Whether an experiment is to be read from a storage.

    Raises:
        ValueError: if ``place`` is a URL that became a path, which changes it.
    """
    if STORAGE.match(str(place)) is None:
        return False
    if isinstance(place, Path):
        raise ValueError("the URL of a storage must be given as text, got a path made of one")
    return True
