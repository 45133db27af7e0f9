"""The face of :mod:`study.sweep.driver` under ``python -m study -m``."""

from __future__ import annotations

from typing import Any

from hydra.core.config_store import ConfigStore
from hydra.core.plugins import Plugins
from hydra.core.utils import JobStatus
from hydra.plugins.sweeper import Sweeper
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig

from hydra_plugins.lora_rl_study._job import JobLauncher

ConfigStore.instance().store(
    group="hydra/sweeper",
    name="study",
    node={"_target_": "hydra_plugins.lora_rl_study.sweeper.StudySweeper"},
    provider="lora_rl_study",
)


class StudySweeper(Sweeper):
    """Plans an experiment, then lets Hydra's launcher start the workers that drain it."""

    def setup(
        self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig
    ) -> None:
        """Keep what is needed to start workers later (called by Hydra)."""
        self.hydra_context = hydra_context
        self.config = config
        self.launcher = Plugins.instance().instantiate_launcher(
            hydra_context=hydra_context, task_function=task_function, config=config
        )

    def sweep(self, arguments: list[str]) -> Any:
        """Carry out the sweep that the command line describes (called by Hydra)."""
        from study.cli import reporting_user_errors
        from study.sweep.driver import sweep

        assert self.config is not None
        with reporting_user_errors():
            if isinstance(self.launcher, JobLauncher) and not self.config.dry_run:
                self.launcher.check()
            if sweep(arguments, self._launch):
                raise SystemExit(1)

    def _launch(self, overrides: list[list[str]]) -> list[str]:
        assert self.launcher is not None
        jobs = self.launcher.launch(overrides, initial_job_idx=0)
        return [str(job._return_value) for job in jobs if job.status is JobStatus.FAILED]
