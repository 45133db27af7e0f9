"""A causal language model whose passes serve many lanes: the library's, with packed layers."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AttentionInterface

from study.train.packed.layers import PackedEmbedding, PackedLinear, PackedNorm
from study.train.packed.segments import Attend, Pass, Segments


class PackedModel:
    """A causal language model whose passes serve many lanes.

    Attributes:
        template: The model as the library built it; its parameters are those of the base.
        base: The base's parameters by name, tied ones once.
    """

    def __init__(self, template: Any) -> None:
        """Builds packed twins around the parameters of `template`, which are shared, not copied."""
        self.template = template.requires_grad_(False)
        self.base = {name: p.detach() for name, p in template.named_parameters()}
        self._names = {id(p): name for name, p in template.named_parameters()}
        self._pass = Pass()
        model = copy.deepcopy(template, {id(p): p for p in template.parameters()}).eval()
        self._anchor = torch.zeros((), device=template.device, requires_grad=True)
        self._install(model)
        model.config._attn_implementation = _ATTENTION
        self._backbone = model.base_model
        self._head = model.get_output_embeddings()

    def full_copy(self) -> Any:
        """A model of its own, with a copy of the base's parameters."""
        return copy.deepcopy(self.template)

    def hidden(self, ids: Tensor, positions: Tensor, parts: Segments, attend: Attend) -> Tensor:
        """Returns the last hidden states [tokens, hidden] of the tokens `ids` at `positions`."""
        self._pass.segments, self._pass.attend = parts, attend
        output = self._backbone(
            input_ids=ids.unsqueeze(0), position_ids=positions.unsqueeze(0), use_cache=False
        )
        hidden: Tensor = output.last_hidden_state[0]
        return hidden

    def logits(self, hidden: Tensor, parts: Segments) -> Tensor:
        """Returns the logits [rows, vocabulary] of hidden states [rows, hidden]."""
        self._pass.segments = parts
        logits: Tensor = self._head(hidden.unsqueeze(0))[0]
        return logits

    def _install(self, model: Any) -> None:
        for name, module in list(model.named_modules()):
            if hasattr(module, "layer_idx"):
                module.packed_pass = self._pass
            own = [parameter for _, parameter in module.named_parameters(recurse=False)]
            if own:
                _replace(model, name, self._twin(module))

    def _twin(self, module: nn.Module) -> nn.Module:
        names = {key: self._names[id(p)] for key, p in module.named_parameters(recurse=False)}
        if isinstance(module, nn.Linear):
            return PackedLinear(self._pass, self._anchor, names)
        if isinstance(module, nn.Embedding):
            return PackedEmbedding(self._pass, self._anchor, names, module)
        assert list(names) == ["weight"], f"no twin of {module}"
        return PackedNorm(self._pass, self._anchor, names, module)


def _replace(model: nn.Module, name: str, twin: nn.Module) -> None:
    parent, _, leaf = name.rpartition(".")
    setattr(model.get_submodule(parent), leaf, twin)


def _packed_attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float,
    **_: Any,
) -> tuple[Tensor, None]:
    """The attention function that the library calls: [1, heads, tokens, d] each."""
    current: Any = module.packed_pass
    rows = (x[0].transpose(0, 1) for x in (query, key, value))
    return current.attend(module.layer_idx, *rows, scaling).unsqueeze(0), None


_ATTENTION = "packed_lanes"
AttentionInterface.register(_ATTENTION, _packed_attention)
