"""Where a run came from: code, packages, machine."""

from __future__ import annotations

import os
import platform
import socket
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PACKAGES = (
    "lora-rl-study",
    "torch",
    "transformers",
    "trl",
    "peft",
    "accelerate",
    "optuna",
    "hydra-core",
    "numpy",
    "reasoning-gym",
)


def provenance() -> dict[str, Any]:
    """Commit, dirty flag, package versions, interpreter, machine and threads of this process."""
    return {
        **git_state(),
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in PACKAGES},
        "platform": platform.platform(),
        "host": socket.gethostname(),
        "cpu": _cpu_name(),
        "gpu": gpu_name(),
        "omp_num_threads": os.environ.get("OMP_NUM_THREADS"),
    }


def git_state() -> dict[str, Any]:
    """``git_commit`` (``unknown`` outside a checkout) and whether files differ from it."""
    commit = _git("rev-parse", "HEAD")
    if commit is None:
        return {"git_commit": "unknown", "git_dirty": None}
    status = _git("status", "--porcelain", "--untracked-files=no")
    return {"git_commit": commit, "git_dirty": bool(status)}


def _git(*arguments: str) -> str | None:
    command = ["git", "-C", str(Path(__file__).parent), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:  # a machine without git
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _cpu_name() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor()


def gpu_name() -> str | None:
    """The GPU of this process, if it has loaded torch: this module must stay cheap to import."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available():
        return None
    return str(torch.cuda.get_device_name())
