"""A Hydra launcher that runs each job in a process of its own on this machine.

Hydra's basic launcher is serial, and a process pool would hand a worker's death to its siblings;
here every job is a spawned process that ends with its parent.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Sequence
from multiprocessing.process import BaseProcess

import cloudpickle
from hydra.core.config_store import ConfigStore
from hydra.core.singleton import Singleton
from hydra.core.utils import JobReturn, JobStatus, run_job, setup_globals
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig, open_dict

ConfigStore.instance().store(
    group="hydra/launcher",
    name="local",
    node={"_target_": "hydra_plugins.lora_rl_study.launcher.LocalLauncher"},
    provider="lora_rl_study",
)


LEAVE_S = 20.0


class LocalLauncher(Launcher):
    """One spawned process a job, all at once."""

    def setup(
        self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig
    ) -> None:
        """Keep what a job needs (called by Hydra)."""
        self.hydra_context = hydra_context
        self.task_function = task_function
        self.config = config

    def launch(
        self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int
    ) -> Sequence[JobReturn]:
        """Run the jobs and wait for all of them; on Ctrl-C, wait until they have left."""
        context = multiprocessing.get_context("spawn")
        jobs = [
            context.Process(target=_run, args=(self._packed(initial_job_idx + i, overrides),))
            for i, overrides in enumerate(job_overrides)
        ]
        for job in jobs:
            job.start()
        try:
            for job in jobs:
                job.join()
        except KeyboardInterrupt:
            _end(jobs)
            raise
        return [_job_return(job.exitcode) for job in jobs]

    def _packed(self, index: int, overrides: Sequence[str]) -> bytes:
        """A job as bytes; Hydra's singletons hold closures, which plain pickle refuses."""
        packed: bytes = cloudpickle.dumps((self, index, list(overrides), Singleton.get_state()))
        return packed

    def run(self, index: int, overrides: list[str]) -> None:
        """Carry out one job; called in its process."""
        config = self.hydra_context.config_loader.load_sweep_config(self.config, overrides)
        with open_dict(config):
            config.hydra.job.id = str(index)
            config.hydra.job.num = index
        result = run_job(
            task_function=self.task_function,
            config=config,
            job_dir_key="hydra.sweep.dir",
            job_subdir_key="hydra.sweep.subdir",
            hydra_context=self.hydra_context,
        )
        _ = result.return_value


def _run(packed: bytes) -> None:
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    try:
        setup_globals()
        launcher, index, overrides, singletons = cloudpickle.loads(packed)
        Singleton.set_state(singletons)
        launcher.run(index, overrides)
    except KeyboardInterrupt:
        raise SystemExit(130) from None  # the parent says what there is to say


def _end(jobs: Sequence[BaseProcess]) -> None:
    """Interrupt the jobs (a terminal has done so already) and give them a moment to leave."""
    for job in jobs:
        if job.pid is not None and job.is_alive():
            os.kill(job.pid, signal.SIGINT)
    deadline = time.monotonic() + LEAVE_S
    for job in jobs:
        job.join(timeout=max(0.0, deadline - time.monotonic()))
        job.kill()


def _leave_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _job_return(exitcode: int | None) -> JobReturn:
    if exitcode == 0:
        return JobReturn(status=JobStatus.COMPLETED)
    error = RuntimeError(f"a worker process ended with exit code {exitcode}")
    return JobReturn(status=JobStatus.FAILED, _return_value=error)
