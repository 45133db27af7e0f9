"""Workers and children that die at every point and at random: nothing is lost or doubled."""

from __future__ import annotations

import itertools
import random
from pathlib import Path

import pytest

from tests.faults.harness import Sweep
from tests.faults.injections import ON_ENGINE, POINTS, TEARING, Fault

WORKER = [name for name, point in POINTS.items() if point.side == "worker"]
CHILD = [name for name, point in POINTS.items() if point.side == "child"]
ONCE = {"before the plan grows", "plan grown, not described"}
"""Points that a sweep of two arms passes a few times only."""


def spread(points: list[str], rng: random.Random, most: int) -> list[Fault]:
    """Each point at some call of it."""
    return [Fault(name, 1 if name in ONCE else rng.randint(1, most)) for name in points]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("engine", ["trl", "packed"])
def test_a_death_at_every_point_of_a_worker(tmp_path: Path, engine: str) -> None:
    faults = [Fault(name) for name in (*WORKER, "half a journal entry")]
    assert Sweep(tmp_path, engine).suffer(faults) == len(faults)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("engine", ["trl", "packed"])
def test_a_death_at_every_point_of_a_child(tmp_path: Path, engine: str) -> None:
    faults = [Fault(name) for name in (*CHILD, "half a metrics line")]
    assert Sweep(tmp_path, engine).suffer(faults) == len(faults)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("engine", ["trl", "packed"])
def test_whatever_an_engine_does_to_its_process(tmp_path: Path, engine: str) -> None:
    faults = [Fault("during rollout", nth, action) for nth, action in enumerate(ON_ENGINE, 1)]
    struck = Sweep(tmp_path, engine).suffer(faults, stall_timeout_s=4)
    assert struck == len(faults) if engine == "packed" else struck >= 3  # three steps a child


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("engine", "workers"), [("trl", 2), ("packed", 2)])
def test_deaths_at_random(tmp_path: Path, engine: str, workers: int) -> None:
    Sweep(tmp_path, engine, seeds=6, rng=random.Random(workers)).kill_at_random(workers, kills=3)


@pytest.mark.nightly
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(("engine", "seed"), [*itertools.product(["trl", "packed"], range(3))])
def test_deaths_at_later_calls_of_every_point(tmp_path: Path, engine: str, seed: int) -> None:
    rng = random.Random(seed)
    faults = spread([*WORKER, *TEARING, *CHILD], rng, most=3)
    rng.shuffle(faults)
    assert Sweep(tmp_path, engine, seeds=8).suffer(faults, workers=1 + seed % 2) >= 15


@pytest.mark.nightly
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(("engine", "workers"), [*itertools.product(["trl", "packed"], [1, 2, 4])])
def test_many_deaths_at_random(tmp_path: Path, engine: str, workers: int) -> None:
    sweep = Sweep(tmp_path, engine, seeds=16, rng=random.Random(10 + workers))
    sweep.kill_at_random(workers, kills=8)
