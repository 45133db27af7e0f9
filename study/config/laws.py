"""How a broken law is said: one sentence with the rule and the values."""

from __future__ import annotations


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


def check_name(name: str) -> None:
    """Refuse names that could leave the runs directory or puzzle a shell."""
    plain = all(c.isalnum() or c in "-_." for c in name)
    if not name or not plain or name.startswith("."):
        raise ValueError(
            "a name may hold letters, digits, '-', '_' and '.' and not start with '.', "
            f"got {name!r}"
        )
