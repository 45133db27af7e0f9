"""Workers as tasks of a Ray cluster."""

from __future__ import annotations

import logging
import os
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from hydra.core.utils import JobReturn

from hydra_plugins.lora_rl_study._job import JobLauncher, exit_failure, job_return
from hydra_plugins.lora_rl_study._process import LEAVE_S, end, start

POLL_S = 0.5
CONNECT_S = 10.0


class RayLauncher(JobLauncher):
    """One Ray task a job; a task whose node dies is started again on another."""

    def __init__(
        self, address: str | None, num_cpus: float, num_gpus: float | None, max_restarts: int
    ) -> None:
        """Builds the launcher; called by Hydra with ``conf/hydra/launcher/ray.yaml``."""
        self.address = address
        self.num_cpus = num_cpus
        self.num_gpus = num_gpus
        self.max_restarts = max_restarts

    def check(self) -> None:
        """Connect to the cluster once; one that the launch would start itself needs no check."""
        if self.address or os.environ.get("RAY_ADDRESS"):
            with _connected(self.address):
                pass
        else:
            _ray()

    def launch(
        self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int
    ) -> Sequence[JobReturn]:
        """Run the jobs and wait for all of them; on Ctrl-C, wait until they have left."""
        jobs = self.jobs(job_overrides, initial_job_idx)
        with _connected(self.address) as ray:
            num_gpus = _gpus(ray, self.num_gpus)
            _say(ray, self.num_cpus, num_gpus)
            task = ray.remote(
                num_cpus=self.num_cpus, num_gpus=num_gpus, max_retries=self.max_restarts
            )(serve)
            tasks = [task.remote(job.packed(), os.getcwd(), num_gpus > 0) for job in jobs]
            try:
                while not _ended(ray, tasks, 1.0):
                    pass
            except KeyboardInterrupt:
                for job in tasks:
                    ray.cancel(job)
                _ended(ray, tasks, LEAVE_S)
                raise
            return [job_return(_failure(ray, job)) for job in tasks]


def serve(packed: bytes, directory: str, has_gpu: bool) -> int:
    """Carry out a job in a process of its own; runs as a Ray task.

    Ray starts its own processes without knowing what they will import; ours has its GPU and its
    threads from the start.

    Args:
        packed: The job.
        directory: Where the command was given, on a disk that all nodes share.
        has_gpu: Whether Ray has assigned a GPU.

    Returns:
        The exit code of the process.
    """
    os.chdir(directory)
    environ = dict(os.environ)
    if not has_gpu:
        environ["CUDA_VISIBLE_DEVICES"] = ""
    process = start(packed, environ)
    try:
        while process.poll() is None:  # Ray cannot interrupt a wait that is not in Python
            time.sleep(POLL_S)
    except KeyboardInterrupt:
        end([process])
        raise
    return process.returncode


def _ray() -> Any:
    try:
        import ray
    except ImportError:
        raise ValueError("hydra/launcher=ray needs Ray: pip install -e '.[ray]'") from None
    return ray


@contextmanager
def _connected(address: str | None) -> Iterator[Any]:
    """Ray, connected to a cluster; a cluster started for this launch ends with it."""
    ray = _ray()
    where = address or os.environ.get("RAY_ADDRESS", "auto")
    place = _checked_place(where)
    try:
        ray.init(
            address=address,
            include_dashboard=False,
            log_to_driver=False,
            logging_level=logging.ERROR,
        )
    except ConnectionError:
        raise ValueError(
            f"hydra.launcher.address: no Ray cluster {place} takes a connection from here; one "
            "that asks for a token needs RAY_AUTH_MODE=token in the environment"
        ) from None
    try:
        yield ray
    finally:
        ray.shutdown()


def _checked_place(address: str) -> str:
    """Where a cluster is, in words; one that does not answer is refused, since Ray itself would
    try for minutes.
    """
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not port.isdigit():
        return "on this machine"  # a word such as auto
    try:
        socket.create_connection((host, int(port)), timeout=CONNECT_S).close()
    except OSError:
        raise ValueError(f"hydra.launcher.address: no Ray cluster answers at {address}") from None
    return f"at {address}"


def _gpus(ray: Any, asked: float | None) -> float:
    """GPUs of a worker: what was asked for, or one if the cluster has any."""
    return float("GPU" in ray.cluster_resources()) if asked is None else asked


def _say(ray: Any, num_cpus: float, num_gpus: float) -> None:
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    print(f"Ray cluster of {len(nodes)} node{'s' * (len(nodes) != 1)}")
    if not any(r.get("CPU", 0) >= num_cpus and r.get("GPU", 0) >= num_gpus for r in nodes):
        print(f"no node has {num_cpus:g} CPUs and {num_gpus:g} GPUs; workers wait for one")


def _ended(ray: Any, tasks: list[Any], timeout_s: float) -> bool:
    return not ray.wait(tasks, num_returns=len(tasks), timeout=timeout_s)[1]


def _failure(ray: Any, task: Any) -> str | None:
    try:
        return exit_failure(ray.get(task))
    except ray.exceptions.RayError as error:
        return f"a worker was lost: {str(error).splitlines()[0]}"
