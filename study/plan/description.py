"""What is known of a model before its weights are read, and the laws that follow from it."""

from __future__ import annotations

import difflib
import re
import warnings
from dataclasses import dataclass

from study.config import FullMethod, LoraMethod, MethodConfig

ATTENTION = ("q_proj", "k_proj", "v_proj", "o_proj")
MLP = ("gate_proj", "up_proj", "down_proj")


@dataclass(frozen=True, kw_only=True)
class Description:
    """Names and shapes of a model built without weights (on torch's meta device)."""

    model_revision: str
    """Hash of the weight file and of ``config.json``."""
    hidden_size: int
    vocab_size: int
    linear_modules: dict[str, tuple[int, int]]
    """Full name of every linear layer but the output head -> (out_features, in_features)."""
    total_params: int
    """Parameters, tied weights counted once."""
    max_prompt_tokens: int
    """Longest prompt of the task under the model's tokenizer, over all three roles."""
    unknown_characters: str
    """Characters of the task that the tokenizer cannot represent."""
    data_revision: str
    """Hash of the prompts and answers the run may meet."""
    packed_refusal: str = ""
    """Why the packed engine cannot train the model, as in "the arm *has a model of type gpt2*";
    empty if it can, and in plans older than that engine, which have theirs stored."""


def resolve_targets(method: MethodConfig, model: Description) -> list[str]:
    """Full names of the linear layers that ``method`` adapts, sorted; empty for ``full``.

    Raises:
        ValueError: if a requested name matches no linear layer, or no layer is left.
    """
    if isinstance(method, FullMethod):
        return []
    assert isinstance(method, LoraMethod)
    wanted = method.target_modules
    if isinstance(wanted, list) and len(wanted) == 1:
        wanted = wanted[0]  # "[all]" is what command lines tend to produce
    if isinstance(wanted, str):
        return _match_one(wanted, model)
    return sorted({name for entry in wanted for name in _match_one(entry, model)})


def _match_one(entry: str, model: Description) -> list[str]:
    names = sorted(model.linear_modules)
    if entry in ("all", "all-linear"):
        return names
    if entry in ("attention", "mlp"):
        leaves = ATTENTION if entry == "attention" else MLP
        found = [n for n in names if n.rsplit(".", 1)[-1] in leaves]
    else:
        found = [n for n in names if n == entry or n.endswith("." + entry)]
        found = found or _match_regex(entry, names)
    if not found:
        leaves_known = sorted({n.rsplit(".", 1)[-1] for n in names})
        near = difflib.get_close_matches(entry, leaves_known, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ValueError(
            f"method.target_modules: {entry!r} matches no linear layer of the model, which has "
            f"{', '.join(leaves_known)}{hint}"
        )
    return found


def _match_regex(pattern: str, names: list[str]) -> list[str]:
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise ValueError(
            f"method.target_modules: {pattern!r} is no valid regex: {error}"
        ) from error
    return [n for n in names if compiled.fullmatch(n)]


def check_rank(method: MethodConfig, targets: list[str], model: Description) -> None:
    """Refuse a rank that no target can use; warn about one that some target cannot.

    Raises:
        ValueError: if the rank exceeds the smaller side of the largest targeted matrix.
    """
    if not isinstance(method, LoraMethod):
        return
    sides = {name: min(model.linear_modules[name]) for name in targets}
    largest, smallest = max(sides.values()), min(sides.values())
    if method.rank > largest:
        raise ValueError(
            f"method.rank <= {largest} must hold (the smaller side of the largest targeted "
            f"matrix), got rank={method.rank}"
        )
    if method.rank > smallest:
        warnings.warn(
            f"method.rank={method.rank} exceeds the smaller side ({smallest}) of some targeted "
            "matrices, whose update cannot have that rank",
            stacklevel=2,
        )


def trainable_params(method: MethodConfig, targets: list[str], model: Description) -> int:
    """Trainable parameters: all of them, or the sum of r (d_in + d_out) over the targets."""
    if isinstance(method, LoraMethod):
        return sum(method.rank * sum(model.linear_modules[name]) for name in targets)
    return model.total_params
