from __future__ import annotations

from pathlib import Path

import pytest

from study.records.store import ExperimentStore


@pytest.fixture
def store(tmp_path: Path) -> ExperimentStore:
    return ExperimentStore(tmp_path)
