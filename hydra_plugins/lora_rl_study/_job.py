"""One job of a multirun as bytes, which any launcher can send to another process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import cloudpickle
from hydra.core.singleton import Singleton
from hydra.core.utils import JobReturn, JobStatus, run_job, setup_globals
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig, open_dict


@dataclass(frozen=True, kw_only=True)
class Job:
    """What Hydra needs to carry out a job elsewhere; nothing in it comes from the environment."""

    hydra_context: HydraContext
    task_function: TaskFunction
    master: DictConfig
    """The configuration of the multirun."""
    index: int
    overrides: list[str]

    def config(self) -> DictConfig:
        """The configuration of this job."""
        config = self.hydra_context.config_loader.load_sweep_config(self.master, self.overrides)
        with open_dict(config):
            config.hydra.job.id = str(self.index)
            config.hydra.job.num = self.index
        return config

    def packed(self) -> bytes:
        """The job as bytes; Hydra's singletons hold closures, which plain pickle refuses."""
        packed: bytes = cloudpickle.dumps((self, Singleton.get_state()))
        return packed

    def run(self) -> JobReturn:
        """Carry the job out here."""
        return run_job(
            task_function=self.task_function,
            config=self.config(),
            job_dir_key="hydra.sweep.dir",
            job_subdir_key="hydra.sweep.subdir",
            hydra_context=self.hydra_context,
        )


class JobLauncher(Launcher):
    """A launcher whose jobs are worker processes."""

    def setup(
        self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig
    ) -> None:
        """Keep what a job needs (called by Hydra)."""
        self.hydra_context = hydra_context
        self.task_function = task_function
        self.config = config

    def check(self) -> None:
        """Refuse, before anything is planned, what could not be launched.

        Raises:
            ValueError: one sentence.
        """

    def jobs(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> list[Job]:
        """The jobs of a launch."""
        return [
            Job(
                hydra_context=self.hydra_context,
                task_function=self.task_function,
                master=self.config,
                index=initial_job_idx + i,
                overrides=list(overrides),
            )
            for i, overrides in enumerate(job_overrides)
        ]


def carry_out(packed: bytes) -> JobReturn:
    """Carry out a job that another process has packed."""
    setup_globals()
    job, singletons = cloudpickle.loads(packed)
    Singleton.set_state(singletons)
    done: JobReturn = job.run()
    return done


def job_return(failure: str | None) -> JobReturn:
    """What Hydra is told of a job; ``failure``: how it failed, in a sentence."""
    if failure is None:
        return JobReturn(status=JobStatus.COMPLETED)
    return JobReturn(status=JobStatus.FAILED, _return_value=RuntimeError(failure))


def failure_of(done: JobReturn) -> str | None:
    """How a job that was carried out here failed; None if it did not."""
    if done.status is not JobStatus.FAILED:
        return None
    error: Any = done._return_value
    return f"{type(error).__name__}: {error}"


def exit_failure(exitcode: int | str | None) -> str | None:
    """How a worker failed whose process has ended; None if it did not."""
    return f"a worker process ended with exit code {exitcode}" if exitcode else None
