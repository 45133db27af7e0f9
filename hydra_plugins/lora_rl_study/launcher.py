"""A Hydra launcher that runs each job in a process of its own on this machine.

Hydra's basic launcher is serial, and a process pool would hand a worker's death to its siblings.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence

from hydra.core.utils import JobReturn

from hydra_plugins.lora_rl_study._job import JobLauncher, exit_failure, job_return
from hydra_plugins.lora_rl_study._process import end, start


class LocalLauncher(JobLauncher):
    """One process a job, all at once; the machine's GPUs and cores are divided among them."""

    def launch(
        self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int
    ) -> Sequence[JobReturn]:
        """Run the jobs and wait for all of them; on Ctrl-C, wait until they have left."""
        from study.sweep.work.devices import (
            available_cores,
            sharing,
            visible_gpus,
            worker_environment,
        )

        jobs = self.jobs(job_overrides, initial_job_idx)
        gpus, cores = visible_gpus(os.environ), available_cores()
        if (shared := sharing(len(jobs), gpus, cores)) is not None:
            print(shared)
        processes: list[subprocess.Popen[bytes]] = []
        try:
            for place, job in enumerate(jobs):
                environ = worker_environment(place, len(jobs), os.environ, gpus, cores)
                processes.append(start(job.packed(), environ))
            for process in processes:
                process.wait()
        except KeyboardInterrupt:
            end(processes)
            raise
        return [job_return(exit_failure(process.returncode)) for process in processes]
