"""A finished sweep, for all that only look at one."""

from __future__ import annotations

import pytest

from study.records.store import ExperimentStore
from tests.unit.sweep.workers import drain, prepared


@pytest.fixture(scope="package")
def finished(tmp_path_factory: pytest.TempPathFactory) -> ExperimentStore:
    """16 runs of the torch-free engine, done."""
    store = prepared(tmp_path_factory.mktemp("progress") / "toy")
    drain(store)
    return store
