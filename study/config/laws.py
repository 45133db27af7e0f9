"""How a broken law is said: one sentence with the rule and the values."""

from __future__ import annotations

import re

MAX_NAME = 100
"""Characters of a name: with what is put around it, it stays a file's name (255 bytes)."""
NAME = re.compile(rf"[A-Za-z0-9_][A-Za-z0-9_.-]{{0,{MAX_NAME - 1}}}")


def require(holds: bool, law: str, **values: object) -> None:
    """Raise ``ValueError`` naming the law and the values that broke it, unless it holds."""
    if not holds:
        got = ", ".join(f"{name}={value!r}" for name, value in values.items())
        raise ValueError(f"{law} must hold, got {got}")


def require_one_of(key: str, value: object, allowed: tuple[str, ...]) -> None:
    """Raise ``ValueError`` unless ``value`` is one of ``allowed``."""
    if value not in allowed:
        raise ValueError(f"{key} must be one of {', '.join(allowed)}, got {value!r}")


def check_seed(key: str, seed: int) -> None:
    """Refuse seeds that some random generator would refuse later."""
    require(0 <= seed < 2**32, f"0 <= {key} < 2**32", seed=seed)


def is_name(name: object) -> bool:
    """Whether a name stays inside its directory, puzzles no shell and looks like no other."""
    return isinstance(name, str) and NAME.fullmatch(name) is not None


def check_name(name: str) -> None:
    """Refuse names that could leave the runs directory or puzzle a shell."""
    if not is_name(name):
        raise ValueError(
            "a name may hold letters (a to z), digits, '-', '_' and '.', not start with '.' or "
            f"'-', and have at most {MAX_NAME} characters, got {name!r}"
        )
