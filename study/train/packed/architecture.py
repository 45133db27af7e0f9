"""What a causal language model of the supported families is made of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

Names = tuple[str, ...]
"""Weights of linear layers that read the same inputs: their outputs lie side by side."""


@dataclass(frozen=True)
class Block:
    """A block's weights, by name, and its constants."""

    attention_norm: str
    qkv: Names
    head_norms: Names
    """Of the queries' and keys' heads; none in most families."""
    output: Names
    mlp_norm: str
    gate_up: Names
    down: Names
    activation: nn.Module
    scaling: float
    """Of the attention's logits."""


@dataclass(frozen=True)
class Architecture:
    """A model's weights, by name, and its constants."""

    embedding: str
    padding: int
    """Token whose embedding has no gradient; -1 for none."""
    embedding_scale: Tensor | None
    """Gemma multiplies embeddings."""
    blocks: list[Block]
    norm: str
    head: Names
    epsilon: float
    """Of the norms."""
    norm_shift: float
    """A norm multiplies by its weight plus this: 1 for Gemma's."""
    query_heads: int
    key_heads: int
    head_width: int

    @property
    def joined(self) -> Iterator[Names]:
        """All groups of linear layers."""
        for block in self.blocks:
            yield from (block.qkv, block.output, block.gate_up, block.down)
        yield self.head


def read_architecture(model: Any) -> Architecture:
    """Reads a model of the library."""
    config, backbone, embedding = model.config, model.base_model, model.get_input_embeddings()
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    final = backbone.norm
    attention = backbone.layers[0].self_attn
    return Architecture(
        embedding=names[id(embedding.weight)],
        padding=-1 if embedding.padding_idx is None else embedding.padding_idx,
        embedding_scale=getattr(embedding, "embed_scale", None),
        blocks=[_block(layer, names) for layer in backbone.layers],
        norm=names[id(final.weight)],
        head=(names[id(model.get_output_embeddings().weight)],),
        epsilon=float(getattr(final, "variance_epsilon", getattr(final, "eps", 0.0))),
        norm_shift=1.0 if type(final).__name__ == "GemmaRMSNorm" else 0.0,
        query_heads=config.num_attention_heads,
        key_heads=config.num_key_value_heads,
        head_width=attention.head_dim,
    )


def _block(layer: Any, names: dict[int, str]) -> Block:
    def named(*modules: nn.Module) -> Names:
        return tuple(names[id(module.weight)] for module in modules)

    attention, mlp = layer.self_attn, layer.mlp
    norms = (attention.q_norm, attention.k_norm) if hasattr(attention, "q_norm") else ()
    return Block(
        attention_norm=named(layer.input_layernorm)[0],
        qkv=named(attention.q_proj, attention.k_proj, attention.v_proj),
        head_norms=named(*norms),
        output=named(attention.o_proj),
        mlp_norm=named(layer.post_attention_layernorm)[0],
        gate_up=named(mlp.gate_proj, mlp.up_proj),
        down=named(mlp.down_proj),
        activation=mlp.act_fn,
        scaling=float(attention.scaling),
    )


def bias_of(weight: str) -> str:
    """The name of the bias beside a weight, if there is one."""
    return f"{weight.removesuffix('weight')}bias"
