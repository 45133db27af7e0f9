"""Launchers as Hydra sees them; tests/cluster starts workers by each of them."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hydra
import pytest
from hydra.core.config_store import ConfigStore
from hydra.core.plugins import Plugins
from hydra.types import HydraContext

from hydra_plugins.lora_rl_study._submitit_job import SubmititJob
from study.compose import CONF_DIR, CONFIG_NAME, register_schemas, user_errors

LAUNCHERS = {
    "local": "launcher.LocalLauncher",
    "ray": "ray_launcher.RayLauncher",
    "submitit_local": "submitit_launcher.SubmititLocalLauncher",
    "submitit_slurm": "submitit_launcher.SlurmLauncher",
}


def launcher(*overrides: str) -> Any:
    """The launcher that a command line chooses, as our sweeper gets it."""
    register_schemas()
    with hydra.initialize_config_dir(str(CONF_DIR), version_base="1.3"):
        config = hydra.compose(CONFIG_NAME, overrides=list(overrides), return_hydra_config=True)
        loader: Any = None
        context = HydraContext(config_loader=loader, callbacks=loader)
        plugins = Plugins.instance()
        return plugins.instantiate_launcher(
            hydra_context=context, task_function=print, config=config
        )


@pytest.mark.parametrize("name", LAUNCHERS)
def test_every_launcher_is_built_without_what_it_launches_by(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for library in ("ray", "submitit"):
        monkeypatch.setitem(sys.modules, library, None)
    built = type(launcher(f"hydra/launcher={name}"))
    assert f"{built.__module__}.{built.__name__}".endswith(LAUNCHERS[name])


def test_workers_is_the_only_knob_for_their_number() -> None:
    with pytest.raises(ValueError, match="launcher"), user_errors():
        launcher("hydra/launcher=local", "hydra.launcher.n_jobs=4")


def test_our_file_is_not_checked_against_another_packages_launcher_of_its_name() -> None:
    @dataclass
    class Foreign:
        _target_: str = "elsewhere.Launcher"

    ConfigStore.instance().store(group="hydra/launcher", name="submitit_slurm", node=Foreign)
    built = launcher("hydra/launcher=submitit_slurm", "hydra.launcher.partition=gpu")
    assert built.settings["partition"] == "gpu"


def test_a_missing_ray_is_named_with_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ValueError, match=r"=ray needs Ray: pip install -e '\.\[ray\]'"):
        launcher("hydra/launcher=ray").check()


def test_a_missing_submitit_is_named_with_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "submitit", None)
    with pytest.raises(ValueError, match=r"needs submitit: pip install -e '\.\[slurm\]'"):
        launcher("hydra/launcher=submitit_slurm").check()


def test_a_machine_without_slurm_is_told_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pytest.importorskip("submitit")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ValueError, match=r"hydra/launcher=submitit_slurm: .*srun"):
        launcher("hydra/launcher=submitit_slurm").check()


def test_a_setting_that_submitit_does_not_know_is_refused_and_a_check_leaves_no_files(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pytest.importorskip("submitit")
    monkeypatch.chdir(tmp_path)
    launcher("hydra/launcher=submitit_local").check()
    with pytest.raises(ValueError, match="submitit_local: Unknown argument 'partition'"):
        launcher("hydra/launcher=submitit_local", "+hydra.launcher.partition=gpu").check()
    assert not list(tmp_path.iterdir())


def test_a_launcher_that_starts_what_it_needs_is_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ray")
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    launcher("hydra/launcher=local").check()
    launcher("hydra/launcher=ray").check()


def test_no_ray_cluster_at_an_address_is_one_sentence() -> None:
    pytest.importorskip("ray")
    built = launcher("hydra/launcher=ray", "hydra.launcher.address=127.0.0.1:9")
    with pytest.raises(ValueError, match=r"no Ray cluster answers at 127\.0\.0\.1:9"):
        built.check()


def test_a_slurm_job_asks_for_one_gpu_and_its_step_for_the_cores_of_the_job(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """SLURM's side is a script that keeps what it is given; a real SLURM needs daemons as root."""
    pytest.importorskip("submitit")
    for name, does in {"srun": "", "sbatch": f"cat $1 > {tmp_path}/job; echo job 7"}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{does}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    built = launcher("hydra/launcher=submitit_slurm", "hydra.launcher.partition=gpu")
    built.executor(tmp_path / "folder").submit_array([SubmititJob(b""), SubmititJob(b"")])
    lines = (tmp_path / "job").read_text().splitlines()
    assert {
        "#SBATCH --array=0-1%2",
        "#SBATCH --cpus-per-task=4",
        "#SBATCH --gpus-per-node=1",
        "#SBATCH --partition=gpu",
        "#SBATCH --signal=USR2@120",
        "#SBATCH --time=1440",
        "export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK",
    } <= set(lines)
