from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from tests.equivalence.tasks import dense_reward, ragged_prompts


@pytest.fixture(autouse=True, scope="package")
def one_thread() -> Iterator[None]:
    """As in a worker: one process a core, one thread a process."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def dense() -> Iterator[None]:
    with dense_reward():
        yield


@pytest.fixture(scope="module")
def ragged() -> Iterator[None]:
    with ragged_prompts():
        yield
