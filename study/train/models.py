"""Models and tokenizers from local directories, and hashes of what they hold."""

import hashlib
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from torch import nn
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, GenerationConfig

from study.config import ModelConfig
from study.lab import lab_model_path

WEIGHTS, WEIGHTS_INDEX = "model.safetensors", "model.safetensors.index.json"
VOCABULARIES = ("tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt", "spiece.model")
HASH_LENGTH = 16
NOT_THE_MODEL = ("lab.json", "trainer_state.json")  # about a model, not part of it
_CHUNK = 1 << 20  # bytes read at a time when a file is hashed


def model_directory(config: ModelConfig) -> Path:
    """Returns the checked directory of a model.

    Raises:
        ValueError: If the directory is missing, or has no ``config.json`` or no complete
            safetensors weights.
    """
    if config.source == "lab":
        path = lab_model_path(config.name)
    else:
        assert config.path is not None
        path = Path(config.path).expanduser().absolute()
    check_directory(path)
    return path


def check_directory(path: Path) -> None:
    """Checks that a directory holds a model in the safetensors format.

    Raises:
        ValueError: If the directory is missing, or has no ``config.json`` or no complete
            safetensors weights.
    """
    if not path.is_dir():
        raise ValueError(f"model directory {path} does not exist.")
    if not (path / "config.json").is_file():
        raise ValueError(f"model directory {path} has no config.json.")
    missing = [file.name for file in weight_files(path) if not file.is_file()]
    if missing:
        raise ValueError(f"model directory {path} lacks the safetensors weights {missing[0]}.")


def weight_files(path: Path) -> list[Path]:
    """Returns the files that hold a model's weights: one, or the shards of its index.

    Raises:
        ValueError: If the index is not valid JSON with a ``weight_map``.
    """
    index = path / WEIGHTS_INDEX
    if not index.is_file():
        return [path / WEIGHTS]
    try:
        shards = set(json.loads(index.read_text())["weight_map"].values())
    except (json.JSONDecodeError, KeyError) as error:
        raise ValueError(f"{index} is not a valid index of safetensors shards.") from error
    return [path / shard for shard in sorted(shards)]


def model_revision(path: Path) -> str:
    """Returns the SHA-256 of what decides a model's tokens, shortened to 16 digits.

    That is its configuration, its tokenizer, its weights, and any code it brings.
    """
    digest = hashlib.sha256()
    small = sorted(
        [*path.glob("*.json"), *path.glob("*.txt"), *path.glob("*.model"), *path.glob("*.py")]
    )
    for file in [*(f for f in small if f.name not in NOT_THE_MODEL), *weight_files(path)]:
        digest.update(file.name.encode())
        with file.open("rb") as stream:
            while chunk := stream.read(_CHUNK):
                digest.update(chunk)
    return digest.hexdigest()[:HASH_LENGTH]


def check_revision(config: ModelConfig, expected: str) -> None:
    """Checks that a model is still the one that was described.

    Raises:
        ValueError: If its files have changed.
    """
    revision = model_revision(model_directory(config))
    if revision != expected:
        raise ValueError(
            f"model {config.name} has changed since the run was planned: revision {expected} "
            f"expected, got {revision}."
        )


def load_tokenizer(config: ModelConfig) -> Any:
    """Returns the model's tokenizer, which pads on the left, as generation needs.

    Raises:
        ValueError: If the directory is no model directory or has no usable tokenizer, or the
            tokenizer has neither a padding nor an end token.
    """
    path = model_directory(config)
    if not any((path / name).is_file() for name in VOCABULARIES):
        # The library would build one without a vocabulary, and say nothing.
        raise ValueError(f"model directory {path} has no tokenizer ({', '.join(VOCABULARIES)}).")
    with _one_sentence(path):
        tokenizer: Any = AutoTokenizer.from_pretrained(
            str(path),
            local_files_only=True,
            trust_remote_code=config.trust_remote_code,
            padding_side="left",
            truncation_side="left",
        )
    if tokenizer.pad_token is None:
        if tokenizer.eos_token is None:
            raise ValueError(f"the tokenizer in {path} has neither a padding nor an end token.")
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def load_model(config: ModelConfig) -> Any:
    """Returns the model with its weights, on the CPU, in ``config.dtype``.

    Its sampling defaults are dropped: a model's ``generation_config.json`` may hold, say, a
    ``min_p`` that would silently join the settings of every later ``generate`` call.

    Raises:
        ValueError: If the directory is no model directory, or weights are damaged or missing.
    """
    path = model_directory(config)
    with _one_sentence(path):
        model, report = AutoModelForCausalLM.from_pretrained(
            str(path),
            local_files_only=True,
            use_safetensors=True,
            trust_remote_code=config.trust_remote_code,
            dtype=getattr(torch, config.dtype),
            output_loading_info=True,
        )
    if report["missing_keys"]:  # the library would train on random numbers in their place
        names = sorted(report["missing_keys"])
        raise ValueError(f"model directory {path} holds no weights for {names[0]}.")
    model.generation_config = _only_tokens(model.generation_config)
    return model


def empty_model(config: ModelConfig) -> Any:
    """Returns the model on torch's meta device, from its configuration: names and shapes only.

    Raises:
        ValueError: If the directory is no model directory, or its configuration is not that of
            a causal language model that the library knows.
    """
    path = model_directory(config)
    with _one_sentence(path), torch.device("meta"):
        architecture = AutoConfig.from_pretrained(
            str(path), local_files_only=True, trust_remote_code=config.trust_remote_code
        )
        model = AutoModelForCausalLM.from_config(
            architecture, trust_remote_code=config.trust_remote_code
        )
    model.tie_weights()
    return model


@contextmanager
def _one_sentence(path: Path) -> Iterator[None]:
    """Turns the libraries' refusals of a model directory into one ValueError of one line."""
    try:
        yield
    except (OSError, ValueError, SafetensorError) as error:
        law = str(error).partition("\n")[0]
        raise ValueError(f"model directory {path} is not usable: {law}") from error


def _only_tokens(defaults: Any) -> Any:
    return GenerationConfig(
        bos_token_id=defaults.bos_token_id,
        eos_token_id=defaults.eos_token_id,
        pad_token_id=defaults.pad_token_id,
    )


def end_token_ids(model: Any, tokenizer: Any) -> list[int]:
    """Returns every token that ends a completion: the tokenizer's and those the model declares."""
    declared = model.generation_config.eos_token_id
    ids = [] if declared is None else [declared] if isinstance(declared, int) else list(declared)
    if tokenizer.eos_token_id is not None and tokenizer.eos_token_id not in ids:
        ids = [tokenizer.eos_token_id, *ids]
    return ids


def hash_parameters(parameters: Iterable[tuple[str, torch.Tensor]]) -> str:
    """Returns the SHA-256 of named tensors, shortened to 16 digits.

    Names, types, shapes and bytes count; the order in which the tensors come does not.
    """
    digest = hashlib.sha256()
    for name, tensor in sorted(parameters, key=lambda item: item[0]):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        flat = tensor.detach().to("cpu").contiguous().reshape(-1)
        digest.update(flat.view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()[:HASH_LENGTH]


def linear_modules(model: Any) -> dict[str, tuple[int, int]]:
    """Returns every linear layer but the output head: full name -> (out_features, in_features)."""
    head = model.get_output_embeddings()
    return {
        name: (module.out_features, module.in_features)
        for name, module in model.named_modules()
        if isinstance(module, nn.Linear) and module is not head
    }
