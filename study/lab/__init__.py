"""The embedded lab models: tiny Qwen3-architecture language models that know arithmetic.

They are pre-trained by `python -m study.lab build` on worked, partly wrong solutions, so
that reinforcement learning has something to sharpen. Importing this package loads no torch.
"""

import os
from pathlib import Path

SHIPPED: tuple[str, ...] = ("lab32", "lab64", "lab128")
BUILT_ON_DEMAND: tuple[str, ...] = ("lab256",)
LAB_MODELS: tuple[str, ...] = SHIPPED + BUILT_ON_DEMAND

_WEIGHTS = Path(__file__).parent / "weights"

__all__ = ["BUILT_ON_DEMAND", "LAB_MODELS", "SHIPPED", "cache_path", "lab_model_path"]


def cache_path(name: str) -> Path:
    """Returns where a lab model is built in the user's cache (it need not exist)."""
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "lora-rl-study" / name


def lab_model_path(name: str) -> Path:
    """Returns the directory of a lab model, ready for `from_pretrained`.

    Looks at the models shipped with the package first, then at the user's cache.

    Raises:
        ValueError: If there is no lab model of that name, or it has not been built.
    """
    if name not in LAB_MODELS:
        raise ValueError(f"lab models are {', '.join(LAB_MODELS)}, got {name!r}.")
    for directory in (_WEIGHTS / name, cache_path(name)):
        if (directory / "model.safetensors").is_file():
            return directory
    raise ValueError(
        f"lab model {name} is not built yet; build it with: python -m study.lab build {name}"
    )
