"""``python -m study`` whose workers have the torch-free engine of :mod:`tests.engine_double`."""

from __future__ import annotations

import hydra
from omegaconf import DictConfig

import study.__main__ as program
from study.compose import CONF_DIR, CONFIG_NAME, register_schemas
from study.sweep.work import child


def work(config: DictConfig) -> None:
    for engine in child.ENGINES:
        child.ENGINES[engine] = "tests.engine_double"
    program.work(config)


if __name__ == "__main__":
    register_schemas()
    hydra.main(version_base="1.3", config_path=str(CONF_DIR), config_name=CONFIG_NAME)(work)()
