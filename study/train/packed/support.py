"""Which models the packed engine can train; what it refuses, the engine `trl` takes."""

from collections.abc import Iterator

from torch import nn

MODEL_TYPES = ("gemma", "llama", "mistral", "qwen2", "qwen3")
"""Architectures that are tested against TRL."""

ROPE_TYPES = ("default", "linear", "llama3", "yarn")
"""Rotary embeddings of a token that do not depend on how long other rows are."""

WIDTH, ACTIVATION_WIDTH = 16, 32
"""Features of linear layers, and those of activations, come in multiples of these: one and two
vectors of the widest processors. With others a lane's slice would begin inside a vector, and the
last elements of an activation, which a processor takes one by one, would be rounded otherwise than
the rest: a lane's last digits would depend on its neighbours."""


def refusal(model: nn.Module, longest: int) -> str:
    """Says why the packed engine cannot train a model, or nothing if it can.

    Args:
        model: The model; the meta device is enough.
        longest: Most tokens of a prompt and its completion.

    Returns:
        A predicate of the arm, naming the setting, such as "has a model of type gpt2"; or ''.
    """
    config = model.config.get_text_config()  # type: ignore[operator,union-attr]
    if config.model_type not in MODEL_TYPES:
        return f"has a model of type {config.model_type}, none of {', '.join(MODEL_TYPES)}"
    if not type(model).__module__.startswith("transformers."):
        return "has a model that brings its own code"
    rope = (getattr(config, "rope_parameters", None) or {}).get("rope_type", "default")
    if rope not in ROPE_TYPES:
        return f"has a model with rope_type={rope}, none of {', '.join(ROPE_TYPES)}"
    dropout = getattr(config, "attention_dropout", 0.0)
    if dropout:
        return f"has a model with attention_dropout={dropout:g}"
    window = getattr(config, "sliding_window", None)
    if window is not None and window < longest:
        return f"has a model with sliding_window={window} for texts of up to {longest} tokens"
    odd = next(_odd_widths(model), None)
    if odd is not None:
        return f"has a model with {odd[1]} features in {odd[0]}, no multiple of {odd[2]}"
    strange = next(_strange_parameters(model), None)
    if strange is not None:
        return f"has a model with the parameter {strange}, of no linear, embedding or norm layer"
    return ""


def _odd_widths(model: nn.Module) -> Iterator[tuple[str, int, int]]:
    """Yields layers with a number of features that is no multiple of what it should be."""
    activations = model.config.get_text_config().intermediate_size  # type: ignore[operator,union-attr]
    if activations % ACTIVATION_WIDTH:
        yield "the activations", activations, ACTIVATION_WIDTH
    head = model.get_output_embeddings()  # type: ignore[operator]
    for name, module in model.named_modules():
        if isinstance(module, nn.Linear):
            sides = [module.in_features] if module is head else [*module.weight.shape]
            yield from ((name, side, WIDTH) for side in sides if side % WIDTH)


def _strange_parameters(model: nn.Module) -> Iterator[str]:
    """Yields the names of parameters that the packed layers have no twin for."""
    for prefix, module in model.named_modules():
        if isinstance(module, nn.Linear | nn.Embedding):
            continue
        for name, parameter in module.named_parameters(recurse=False):
            is_norm = type(module).__name__.endswith("Norm") and name == "weight"
            if not (is_norm and parameter.ndim == 1):
                yield f"{prefix}.{name}" if prefix else name
