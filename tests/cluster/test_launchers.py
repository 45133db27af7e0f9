"""The same sweep by every launcher, through the real command line."""

from __future__ import annotations

import math
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.launches import (
    PRETENDED,
    STEP_S,
    TRAINED,
    in_training,
    interrupted,
    kill,
    launch,
    launched,
    processes_of,
    records,
    wait_for,
)

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]

SECRET = "a-key-that-only-the-environment-knows"
ONE_OF_TWO = {
    "RANK": "1",
    "LOCAL_RANK": "1",
    "WORLD_SIZE": "2",
    "MASTER_ADDR": "127.0.0.1",
    "MASTER_PORT": "9",
}
"""As in a job that was started for distributed training: nobody may wait for the other one."""
WORKER = "hydra_plugins.lora_rl_study._process"
SUBMITTED = "submitit.core._submit"


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The local launcher's records."""
    runs_dir = tmp_path_factory.mktemp("undisturbed")
    done = launch("study", runs_dir, *TRAINED)
    assert done.returncode == 0, done.stderr
    assert len(records(runs_dir)) == 4
    return runs_dir


class RayCluster:
    """A Ray cluster of two nodes with a core each."""

    def __init__(self) -> None:
        cluster_utils = pytest.importorskip("ray.cluster_utils")
        head = {"num_cpus": 1, "include_dashboard": False}
        self.cluster = cluster_utils.Cluster(initialize_head=True, head_node_args=head)
        self.second = self.cluster.add_node(num_cpus=1)

    def kill_second_node(self) -> None:
        self.cluster.remove_node(self.second, allow_graceful=False)


@pytest.fixture(scope="module")
def ray_cluster() -> Iterator[RayCluster]:
    with pytest.MonkeyPatch.context() as patch:  # workers inherit from their node
        patch.setenv("ENGINE_DOUBLE_STEP_S", STEP_S)
        patch.setenv("RAY_worker_niceness", "0")
        cluster = RayCluster()
    try:
        yield cluster
    finally:
        cluster.cluster.shutdown()


@pytest.mark.parametrize(
    ("launcher", "refusal"),
    [
        (["ray", "hydra.launcher.address=127.0.0.1:9"], "no Ray cluster answers at 127.0.0.1:9"),
        (["submitit_local", "+hydra.launcher.partition=gpu"], "Unknown argument 'partition'"),
    ],
)
def test_what_cannot_be_launched_is_refused_before_anything_is_planned(
    tmp_path: Path, launcher: list[str], refusal: str
) -> None:
    pytest.importorskip("ray")
    pytest.importorskip("submitit")
    chosen = [f"hydra/launcher={launcher[0]}", *launcher[1:]]
    refused = launch("study", tmp_path, *PRETENDED, *chosen)
    assert refused.returncode == 2
    assert refusal in refused.stderr and refused.stderr.count("\n") == 1
    assert refused.stdout == ""
    assert not list(tmp_path.iterdir())
    planned = launch("study", tmp_path, *PRETENDED, *chosen, "dry_run=true")
    assert planned.returncode == 0, planned.stderr


def by_ray(ray_cluster: RayCluster) -> list[str]:
    address = ray_cluster.cluster.address
    return ["hydra/launcher=ray", f"hydra.launcher.address={address}"]


def test_submitit_reaches_the_records_of_local_processes(undisturbed: Path, tmp_path: Path) -> None:
    environ = {"API_KEY": SECRET, **ONE_OF_TWO}
    done = launch("study", tmp_path, *TRAINED, "hydra/launcher=submitit_local", environ=environ)
    assert done.returncode == 0, done.stderr
    assert records(tmp_path) == records(undisturbed)
    folder = tmp_path / "tiny" / ".submitit"
    assert len(list(folder.glob("*_result.pkl"))) == 2
    for path in tmp_path.rglob("*"):
        assert not path.is_file() or SECRET.encode() not in path.read_bytes(), path


def test_ray_reaches_the_records_of_local_processes(
    undisturbed: Path, tmp_path: Path, ray_cluster: RayCluster
) -> None:
    done = launch("study", tmp_path, *TRAINED, *by_ray(ray_cluster))
    assert done.returncode == 0, done.stderr
    assert "Ray cluster of 2 nodes" in done.stdout
    assert records(tmp_path) == records(undisturbed)


def test_a_killed_worker_is_named_and_the_same_command_ends_the_sweep(tmp_path: Path) -> None:
    with launched(tmp_path) as sweep:
        wait_for(lambda: in_training(tmp_path) == 2, sweep)
        kill(processes_of(sweep, WORKER))
        out, _ = sweep.communicate()
    assert sweep.returncode == 1
    assert out.count("a worker process ended with exit code -9") == 2
    assert "the same command resumes" in out
    done = launch("tests.cluster.torch_free", tmp_path, *PRETENDED)
    assert done.returncode == 0, done.stdout + done.stderr
    assert_scores_are_those_of_the_engine(tmp_path)


def test_ray_workers_hand_their_runs_back_on_ctrl_c_and_survive_a_node(
    tmp_path: Path, ray_cluster: RayCluster
) -> None:
    with launched(tmp_path, *by_ray(ray_cluster)) as sweep:
        wait_for(lambda: in_training(tmp_path) == 2, sweep)
        sweep.send_signal(signal.SIGINT)
        out, err = sweep.communicate()
    assert sweep.returncode == 130, err
    assert "interrupted; the same command resumes" in out
    assert interrupted(tmp_path) == 2
    assert in_training(tmp_path) == 0
    with launched(tmp_path, *by_ray(ray_cluster)) as sweep:
        wait_for(lambda: in_training(tmp_path) == 2, sweep)
        ray_cluster.kill_second_node()
        out, err = sweep.communicate()
    assert sweep.returncode == 0, out + err
    assert_scores_are_those_of_the_engine(tmp_path)


def test_a_worker_whose_time_is_up_hands_its_runs_back_and_is_queued_again(tmp_path: Path) -> None:
    with launched(tmp_path, "hydra/launcher=submitit_local") as sweep:
        wait_for(lambda: in_training(tmp_path) == 2, sweep)
        first, _ = processes_of(sweep, SUBMITTED)
        first.send_signal(signal.SIGUSR2)
        out, err = sweep.communicate()
    assert sweep.returncode == 0, out + err
    logs = "".join(p.read_text() for p in (tmp_path / "tiny" / ".submitit").glob("*_log.*"))
    assert "Requeued job" in logs
    assert interrupted(tmp_path) == 1
    assert_scores_are_those_of_the_engine(tmp_path)


def assert_scores_are_those_of_the_engine(runs_dir: Path) -> None:
    """Every planned run is there once, with the score that the torch-free engine gives it."""
    found = records(runs_dir)
    assert len(found) == 6
    for record in found.values():
        distance = math.log10(record["learning_rate"] / 2e-3)
        score = 0.2 + 0.5 * math.exp(-(distance**2) / 0.3) - record["seed"] / 1e4
        assert record["score_final"] == score
