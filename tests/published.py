"""Published sweeps, read where they lie beside the checkout and never copied into it."""

from __future__ import annotations

from pathlib import Path

import pytest

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


def published(name: str) -> Path:
    """Path of a published file; skips the test where it is absent."""
    path = DATA / name
    if not path.is_file():
        pytest.skip(f"the published sweep {name} is not beside this checkout (shared/data)")
    return path
