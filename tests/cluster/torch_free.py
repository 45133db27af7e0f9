"""``python -m study`` whose workers have the torch-free engine of :mod:`tests.engine_double`."""

from __future__ import annotations

from omegaconf import DictConfig

import study.__main__ as program


def work(config: DictConfig) -> None:
    from study.sweep.child import ENGINES

    for engine in ENGINES:
        ENGINES[engine] = "tests.engine_double"
    program_work(config)


program_work = program.work
