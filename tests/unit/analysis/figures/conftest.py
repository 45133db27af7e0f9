"""The quickstart's synthetic experiment, read once."""

from __future__ import annotations

import pytest

from analysis.reading.load import load
from analysis.reading.sweep import Sweep
from tests.doubles import write_synthetic_experiment


@pytest.fixture(scope="session")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> Sweep:
    """A finished experiment: ``full``, ``lora-r1``, ``lora-r8``, true ratio 10."""
    return load(write_synthetic_experiment(tmp_path_factory.mktemp("runs") / "quickstart"))
