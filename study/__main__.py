"""One run, or with ``-m`` a sweep.

Examples::

    python -m study method=lora method.rank=8 objective.learning_rate=1e-3
    python -m study -m experiment=quickstart workers=2
    python -m study -m experiment=quickstart dry_run=true
    python -m study -m method=lora method.rank=1,8 objective.learning_rate=1e-4,1e-3 seed=0,1
"""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path

import hydra
from omegaconf import DictConfig

from study.cli import reporting_user_errors
from study.compose import (
    CONF_DIR,
    CONFIG_NAME,
    check_experiment_keys,
    register_schemas,
    to_dataclasses,
)
from study.sweep.driver import run_single, serve
from study.sweep.errors import SweepStoppedError


def work(config: DictConfig) -> None:
    """Train one run, or serve as a worker of a sweep (called by Hydra)."""
    if config.worker_of is not None:
        try:
            serve(Path(config.worker_of), to_dataclasses(config))
        except SweepStoppedError as error:
            print(f"error: {error}", file=sys.stderr)
            raise SystemExit(2) from None
        return
    with reporting_user_errors():
        study_config = to_dataclasses(config)
        if study_config.experiment is not None:
            raise ValueError(
                f"an experiment is a sweep: python -m study -m {' '.join(sys.argv[1:])}"
            )
        if run_single(study_config):
            raise SystemExit(1)


# Undecorated, so that launchers can send ``work`` to other processes by name.
run = hydra.main(version_base="1.3", config_path=str(CONF_DIR), config_name=CONFIG_NAME)(work)


def main() -> None:
    """Entry point of ``python -m study``."""
    warnings.formatwarning = lambda message, *_: f"warning: {message}\n"
    register_schemas()
    with reporting_user_errors():
        check_experiment_keys(sys.argv[1:])
        os.environ["HYDRA_FULL_ERROR"] = "1"  # Hydra's own report is several lines; ours is one
        run()


if __name__ == "__main__":
    main()
