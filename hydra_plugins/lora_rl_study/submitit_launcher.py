"""Workers as jobs of SLURM, an array of them, or of submitit's stand-in for it on this machine.

Hydra's own submitit launcher ends its wait with the first job that failed, and leaves the others
to the cluster on Ctrl-C; this one takes the same settings.
"""

from __future__ import annotations

import subprocess
import tempfile
import time
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hydra.core.utils import JobReturn
from omegaconf import OmegaConf

from hydra_plugins.lora_rl_study._job import Job, JobLauncher, job_return
from hydra_plugins.lora_rl_study._submitit_job import SubmititJob

FOLDER = ".submitit"
"""Job files and logs, inside the experiment's directory."""
SHARED_SETTINGS = frozenset(
    {
        "name",
        "timeout_min",
        "mem_gb",
        "nodes",
        "cpus_per_task",
        "gpus_per_node",
        "tasks_per_node",
        "stderr_to_stdout",
    }
)
"""What submitit takes for any cluster; everything else is named after its cluster."""
POLL_S = 1.0


class SubmititLauncher(JobLauncher):
    """One job a worker, submitted at once."""

    cluster: str
    ask_every_s: float
    """A job that ended without a result is missing twice when its cluster is asked for it."""

    def __init__(
        self, submitit_folder: str | None = None, max_num_timeout: int = 0, **settings: Any
    ) -> None:
        """Builds the launcher; called by Hydra with ``conf/hydra/launcher/submitit_*.yaml``."""
        self.submitit_folder = submitit_folder
        self.max_num_timeout = max_num_timeout
        self.settings = {
            key: OmegaConf.to_container(value, resolve=True)
            if OmegaConf.is_config(value)
            else value
            for key, value in settings.items()
        }

    def check(self) -> None:
        """Ask submitit whether its cluster is here and takes these settings."""
        with self._user_errors(), tempfile.TemporaryDirectory() as folder:
            self.executor(Path(folder))

    def launch(
        self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int
    ) -> Sequence[JobReturn]:
        """Submit the jobs and wait for all of them; on Ctrl-C, cancel them."""
        jobs = self.jobs(job_overrides, initial_job_idx)
        with self._user_errors():
            executor = self.executor(self._folder(jobs[0]))
            submitted = executor.submit_array([SubmititJob(job.packed()) for job in jobs])
        numbers = sorted({job.job_id.partition("_")[0] for job in submitted})
        print(f"submitted as job {', '.join(numbers)}; logs: {submitted[0].paths.folder}")
        try:
            self._wait(submitted)
        except KeyboardInterrupt:
            for job in submitted:
                job.cancel(check=False)
            raise
        return [job_return(_failure(job)) for job in submitted]

    @abstractmethod
    def gone(self, submitted: Sequence[Any]) -> set[str]:
        """Ids of submitted jobs that neither run nor wait."""

    def _wait(self, submitted: Sequence[Any]) -> None:
        """Wait until every job has left a result or is gone."""
        waiting, missed, asked = list(submitted), set[str](), time.monotonic()
        while waiting:
            time.sleep(POLL_S)
            waiting = [job for job in waiting if not job.paths.result_pickle.exists()]
            if waiting and time.monotonic() - asked >= self.ask_every_s:
                missing, asked = self.gone(waiting), time.monotonic()
                waiting = [job for job in waiting if job.job_id not in missing & missed]
                missed = missing

    def _folder(self, job: Job) -> Path:
        path = self.submitit_folder or Path(job.config().worker_of) / FOLDER
        return Path(path).expanduser().absolute()

    def executor(self, folder: Path) -> Any:
        """What submits jobs with this launcher's settings.

        Args:
            folder: For job files and logs.
        """
        import submitit

        timeouts = {f"{self.cluster}_max_num_timeout": self.max_num_timeout}
        executor = submitit.AutoExecutor(folder=folder, cluster=self.cluster, **timeouts)
        executor.update_parameters(
            **{
                key if key in SHARED_SETTINGS else f"{self.cluster}_{key}": value
                for key, value in self.settings.items()
            }
        )
        return executor

    @contextmanager
    def _user_errors(self) -> Iterator[None]:
        """What submitit or the cluster refuses, in one sentence."""
        launcher = f"hydra/launcher=submitit_{self.cluster}"
        try:
            yield
        except ImportError:
            raise ValueError(f"{launcher} needs submitit: pip install -e '.[slurm]'") from None
        except (AssertionError, NameError, RuntimeError) as error:  # as submitit has them
            raise ValueError(f"{launcher}: {str(error).splitlines()[0]}") from error


class SlurmLauncher(SubmititLauncher):
    """Workers as a job array of SLURM."""

    cluster = "slurm"
    ask_every_s = 20.0

    def gone(self, submitted: Sequence[Any]) -> set[str]:
        """Asks ``squeue``, which answers on clusters without accounting as well."""
        numbers = {job.job_id.partition("_")[0] for job in submitted}
        queue = subprocess.run(
            ["squeue", "--noheader", "--array", "--format=%i", f"--jobs={','.join(numbers)}"],
            capture_output=True,
            text=True,
            check=False,
        )
        if queue.returncode and "Invalid job id" not in queue.stderr:
            return set()  # the controller does not answer, which says nothing about jobs
        return {job.job_id for job in submitted} - set(queue.stdout.split())


class SubmititLocalLauncher(SubmititLauncher):
    """The same on this machine, without SLURM: a trial of what would be submitted."""

    cluster = "local"
    ask_every_s = 1.0

    def gone(self, submitted: Sequence[Any]) -> set[str]:
        """Asks the operating system."""
        return {job.job_id for job in submitted if job.done()}


def _failure(job: Any) -> str | None:
    """How a job failed that has ended: in its worker, or without leaving a result."""
    if not job.paths.result_pickle.exists():
        return f"job {job.job_id} ended without a result; its log: {job.paths.stderr}"
    failure: str | None = str(job.exception() or "") or job.results()[0]
    return None if failure is None else f"job {job.job_id}: {failure}; its log: {job.paths.stderr}"
