"""Many runs in one process, each the same as alone: the engine `packed`."""

from study.train.packed.engine import train

__all__ = ["train"]
