"""Adapters put together, merged into their base, or made ready for other programs."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from peft import PeftModel
from safetensors.torch import load_file
from torch import Tensor

from study.adapters.stored import CONFIG, WEIGHTS, Adapter, shared_base
from study.adapters.updates import PREFIX, distance, matrices, summed
from study.tasks.loading import load_task
from study.train.models import check_revision, hash_parameters, load_model, load_tokenizer
from study.train.quiet import quiet_libraries

PROBES = 8
"""Prompts on which logits are compared."""
VLLM_RANKS = (8, 16, 32, 64, 128, 256, 320, 512)
"""Values of vLLM's ``--max-lora-rank``."""
COMBINED = "combined"
ADAPTED = ".base_layer.weight"
"""What PEFT calls the base's weight of a layer that it adapts."""


@dataclass(frozen=True)
class Merged:
    """What a merge did.

    Attributes:
        logits_gap: Largest difference of a logit, merged against base and adapter side by side.
        logits_range: Largest logit less smallest, of what it is compared with.
        kept: Norm of what the merge changed over that of the update: 1 but for rounding.
    """

    logits_gap: float
    logits_range: float
    kept: float


def merge(parts: Sequence[tuple[float, Adapter]], out: Path) -> Merged:
    """Write the base with a weighted sum of adapters added to its weights.

    Args:
        parts: Weights and adapters.
        out: A directory that does not exist yet.

    Raises:
        ValueError: If ``out`` exists, bases differ or the base has changed, or the base's
            precision has no room for most of the update.
    """
    _refuse_existing(out)
    with quiet_libraries():
        model = _adapted(parts)
        ids = _probe_ids(parts[0][1])
        with torch.no_grad():
            beside = model(**ids).logits.float()
            named = model.get_base_model().named_parameters()
            before = {name: p.clone() for name, p in named if name.endswith(ADAPTED)}
            merged = model.merge_and_unload(safe_merge=True)
            after = merged(**ids).logits.float()
        kept = _kept(parts, before, merged)
        if kept < 0.5:
            raise ValueError(
                f"a merge must keep the update, but {merged.dtype} has room for {kept:.0%} of its "
                "norm; merge into a float32 base"
            )
        merged.save_pretrained(str(out))
        load_tokenizer(parts[0][1].config.model).save_pretrained(str(out))
    gap, spread = float((after - beside).abs().max()), float(beside.max() - beside.min())
    return Merged(gap, spread, kept)


def _kept(parts: Sequence[tuple[float, Adapter]], before: dict[str, Tensor], merged: Any) -> float:
    """Norm of the change of the adapted weights over that of the update in float64."""
    expected = summed([(w, own.scaling, matrices(own)) for w, own in parts])
    moved = 0.0
    for target in expected:
        weight = merged.get_submodule(target).weight.detach().double()
        moved += float((weight - before[target + ADAPTED].double()).square().sum())
    norm = sum(float(update.square().sum()) for update in expected.values())
    return math.sqrt(moved / norm) if norm else 1.0


def combine(parts: Sequence[tuple[float, Adapter]], how: str, out: Path) -> float:
    """Write one adapter made of several, by PEFT's ``add_weighted_adapter``.

    Args:
        parts: Weights and adapters.
        how: ``cat``, which adds updates up exactly, at the sum of the ranks; or ``linear``, at
            equal ranks, which averages the factors A and B each by itself: no sum of updates.
        out: A directory that does not exist yet.

    Returns:
        Relative distance of the new update from the weighted sum of the updates.

    Raises:
        ValueError: If ``out`` exists, bases or, for ``linear``, ranks differ.
    """
    _refuse_existing(out)
    ranks = sorted({own.rank for _, own in parts})
    if how == "linear" and len(ranks) > 1:
        raise ValueError(f"--how linear needs adapters of one rank, got {ranks}; cat takes any")
    with quiet_libraries():
        model = _adapted(parts, how)
        model.save_pretrained(str(out), selected_adapters=[COMBINED])
    for file in (out / COMBINED).iterdir():
        file.rename(out / file.name)
    (out / COMBINED).rmdir()
    (out / "README.md").unlink(missing_ok=True)
    _name_base(out, parts[0][1].record.model)
    expected = summed([(w, own.scaling, matrices(own)) for w, own in parts])
    return distance(_stored_update(out), expected)


def _stored_update(directory: Path) -> dict[str, Tensor]:
    settings = json.loads((directory / CONFIG).read_text())
    stored, scaling = load_file(directory / WEIGHTS), settings["lora_alpha"] / settings["r"]
    found = {}
    for name, a in stored.items():
        if ".lora_A." in name:
            b = stored[name.replace(".lora_A.", ".lora_B.")]
            target = name.removeprefix(PREFIX).rsplit(".lora_", 1)[0]
            found[target] = scaling * (b.double() @ a.double())
    return found


def export(adapter: Adapter, kind: str, out: Path, base: str) -> list[str]:
    """Copy an adapter for PEFT or vLLM, without paths of this machine.

    Args:
        adapter: The adapter.
        kind: ``peft`` or ``vllm``.
        out: A directory that does not exist yet.
        base: What ``base_model_name_or_path`` shall say.

    Returns:
        Lines that say how to load it.

    Raises:
        ValueError: If ``out`` exists, or vLLM takes no adapter of this rank.
    """
    _refuse_existing(out)
    fits = [rank for rank in VLLM_RANKS if rank >= adapter.rank]
    if kind == "vllm" and not fits:
        raise ValueError(f"vLLM takes ranks up to {VLLM_RANKS[-1]}, got {adapter.rank}")
    assert adapter.settings  # only plain adapters leave
    out.mkdir(parents=True)
    for name in (CONFIG, WEIGHTS):
        shutil.copyfile(adapter.path / name, out / name)
    _name_base(out, base)
    if kind == "peft":
        return [
            f'PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained("{base}"), "{out}")'
        ]
    name = adapter.record.arm
    return [
        f"vllm serve {base} --enable-lora --max-lora-rank {fits[0]} --lora-modules {name}={out}"
    ]


def _name_base(directory: Path, base: str) -> None:
    """Say which base an adapter belongs to by a name that others know."""
    path = directory / CONFIG
    settings = json.loads(path.read_text()) | {"base_model_name_or_path": base}
    settings["target_modules"] = sorted(settings["target_modules"])
    path.write_text(json.dumps(settings, indent=2) + "\n")


def _adapted(parts: Sequence[tuple[float, Adapter]], how: str = "cat") -> Any:
    """The base with the weighted sum of adapters active, as PEFT makes it; bases are checked."""
    run = shared_base([own for _, own in parts])
    check_revision(run.model, parts[0][1].record.model_revision)
    base = load_model(run.model)
    frozen = hash_parameters(base.named_parameters())
    names = [f"part{number}" for number in range(len(parts))]
    model = PeftModel.from_pretrained(base, str(parts[0][1].path), adapter_name=names[0])
    for name, (_, own) in zip(names[1:], parts[1:], strict=True):
        model.load_adapter(str(own.path), adapter_name=name)
    weights = [weight for weight, _ in parts]
    model.add_weighted_adapter(names, weights, COMBINED, combination_type=how)
    model.set_adapter(COMBINED)
    for name in names:
        model.delete_adapter(name)
    own_names = (
        (n.replace(".base_layer", ""), p) for n, p in model.get_base_model().named_parameters()
    )
    left = hash_parameters((n, p) for n, p in own_names if ".lora_" not in n)
    if left != frozen:
        raise RuntimeError("the base must be bit-identical beside its adapters, and is not")
    return model.eval()


def _probe_ids(adapter: Adapter) -> dict[str, Tensor]:
    """A few of the task's held-out prompts, padded."""
    problems = load_task(adapter.config.task).problems("report", PROBES)
    tokenizer = load_tokenizer(adapter.config.model)
    found = tokenizer([p.prompt for p in problems], padding=True, return_tensors="pt")
    return {key: found[key] for key in ("input_ids", "attention_mask")}


def _refuse_existing(out: Path) -> None:
    if out.exists():
        raise ValueError(f"--out must name a directory that does not exist, got {out}")
