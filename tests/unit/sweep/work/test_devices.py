from __future__ import annotations

from pathlib import Path

import pytest

from study.sweep.work import devices
from study.sweep.work.devices import (
    installed_gpus,
    listed_gpus,
    named_gpus,
    settle,
    sharing,
    visible_gpus,
    worker_environment,
)

MIG = "MIG-5c89852c-d268-c3f3-1b07-005d5ae1dc3f"
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


def test_workers_take_the_gpus_in_turn_and_share_when_there_are_more_workers() -> None:
    taken = [worker_environment(i, 5, {}, ["0", "1"], 16)["CUDA_VISIBLE_DEVICES"] for i in range(5)]
    assert taken == ["0", "1", "0", "1", "0"]


def test_a_list_that_the_user_set_is_divided_and_its_names_are_only_names() -> None:
    environ = {"CUDA_VISIBLE_DEVICES": f"3, {MIG},GPU-aa"}
    assert visible_gpus(environ, lambda: ["0", "1"]) == ["3", MIG, "GPU-aa"]


@pytest.mark.parametrize(
    ("chosen", "names"), [("", []), ("-1", []), ("2,-1,3", ["2"]), ("0,,1", ["0"])]
)
def test_the_list_ends_where_cuda_ends_it(chosen: str, names: list[str]) -> None:
    assert named_gpus(chosen) == names


def test_without_a_list_the_machines_gpus_are_divided() -> None:
    assert visible_gpus({}, lambda: ["0", "1"]) == ["0", "1"]


def test_a_partitioned_gpu_counts_as_its_partitions() -> None:
    listing = (
        "GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-1)\n"
        f"  MIG 3g.20gb     Device  0: (UUID: {MIG})\n"
        "  MIG 3g.20gb     Device  1: (UUID: MIG-2)\n"
        "GPU 1: NVIDIA A100-SXM4-40GB (UUID: GPU-2)\n"
    )
    assert listed_gpus(listing) == [MIG, "MIG-2", "1"]


def test_gpus_are_counted_by_nvidia_smi_else_by_the_kernels_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    smi = tmp_path / "nvidia-smi"
    smi.write_text("#!/bin/sh\necho 'GPU 0: H200 (UUID: GPU-1)'\n")
    smi.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert installed_gpus() == ["0"]
    smi.write_text("#!/bin/sh\nexit 9\n")
    monkeypatch.setattr(devices, "DRIVER_GPUS", tmp_path / "gpus")
    assert installed_gpus() == []
    for address in ("0000:01:00.0", "0000:02:00.0"):
        (tmp_path / "gpus" / address).mkdir(parents=True)
    assert installed_gpus() == ["0", "1"]


def test_cores_are_divided_into_at_least_one_thread() -> None:
    threads = [worker_environment(0, n, {}, [], 16)["OMP_NUM_THREADS"] for n in (1, 3, 16, 40)]
    assert threads == ["16", "5", "1", "1"]


def test_threads_that_the_user_set_hold_for_all_libraries() -> None:
    environment = worker_environment(0, 4, {"OMP_NUM_THREADS": "7"}, [], 16)
    assert [environment[name] for name in THREADS] == ["7"] * 3
    mixed = worker_environment(0, 4, {"MKL_NUM_THREADS": "2"}, [], 16)
    assert [mixed[name] for name in THREADS] == ["4", "2", "4"]


def test_a_machine_without_gpus_leaves_the_variable_alone() -> None:
    assert "CUDA_VISIBLE_DEVICES" not in worker_environment(0, 2, {}, [], 2)


@pytest.mark.parametrize(
    ("workers", "gpus", "cores", "sentence"),
    [
        (2, ["0", "1"], 2, None),
        (4, [], 4, None),
        (3, ["0"], 16, "3 workers share 1 GPU"),
        (8, ["0", "1"], 4, "8 workers share 2 GPUs"),
        (3, [], 1, "3 workers share 1 core"),
        (3, ["0", "1", "2"], 2, "3 workers share 2 cores"),
    ],
)
def test_sharing_is_said(workers: int, gpus: list[str], cores: int, sentence: str | None) -> None:
    assert sharing(workers, gpus, cores) == sentence


@pytest.mark.parametrize(
    ("given", "seen"),
    [({}, "0"), ({"CUDA_VISIBLE_DEVICES": "5"}, "5"), ({"CUDA_VISIBLE_DEVICES": f"{MIG},5"}, MIG)],
)
def test_a_worker_sees_exactly_one_gpu(given: dict[str, str], seen: str) -> None:
    environ = dict(given)
    settle(environ, workers=1, cores=1)
    assert environ["CUDA_VISIBLE_DEVICES"] == seen


def test_a_worker_that_was_given_no_gpu_takes_none() -> None:
    environ = {"CUDA_VISIBLE_DEVICES": ""}
    settle(environ, workers=1, cores=1)
    assert environ["CUDA_VISIBLE_DEVICES"] == ""


def test_what_a_launcher_has_assigned_stays() -> None:
    environ = worker_environment(1, 2, {}, ["0", "1"], 8)
    settle(environ, workers=2, cores=8)
    assert environ["OMP_NUM_THREADS"] == "4"
    assert environ["CUDA_VISIBLE_DEVICES"] == "1"


@pytest.mark.parametrize(
    ("cores", "per_task", "threads"), [(8, "8", "8"), (64, "8", "8"), (1, "8", "1"), (4, None, "4")]
)
def test_a_slurm_worker_has_the_cores_of_its_task(
    cores: int, per_task: str | None, threads: str
) -> None:
    environ = {"SUBMITIT_EXECUTOR": "slurm"}
    if per_task is not None:
        environ["SLURM_CPUS_PER_TASK"] = per_task
    settle(environ, workers=16, cores=cores)
    assert environ["OMP_NUM_THREADS"] == threads


def test_local_workers_inside_a_slurm_allocation_share_it() -> None:
    environ = {"SLURM_CPUS_PER_TASK": "8"}
    settle(environ, workers=4, cores=8)
    assert environ["OMP_NUM_THREADS"] == "2"


def test_a_worker_waits_for_no_other_process_whatever_it_was_started_from() -> None:
    environ = {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "elsewhere", "MASTER_PORT": "29500"}
    settle(environ, workers=1, cores=1)
    assert not set(environ) & set(devices.RENDEZVOUS)
    assert environ["TOKENIZERS_PARALLELISM"] == "false"
