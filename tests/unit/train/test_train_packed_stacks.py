"""Lanes stacked for one product: rows by hand, products against each lane's own."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from study.train.packed import model as packed_model
from study.train.packed.model import PackedModel
from study.train.packed.stacks import AdapterStack, DenseStack, Stacks
from study.train.packed.weights import AdapterWeights, FullWeights, LaneWeights

SHAPE = {
    "vocab_size": 19,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "attention_bias": True,
}
LAYER = "model.layers.0.self_attn."
QKV = tuple(f"{LAYER}{name}_proj.weight" for name in "qkv")


@pytest.fixture
def model() -> PackedModel:
    torch.manual_seed(0)
    template = LlamaForCausalLM(LlamaConfig(**SHAPE))
    biases = (name for name, _ in template.named_parameters() if name.endswith("bias"))
    return PackedModel(template, frozenset(biases))


@pytest.fixture(params=["merged", "shared base"])
def merges(request: pytest.FixtureRequest) -> Iterator[bool]:
    with pytest.MonkeyPatch.context() as patch:
        merged = request.param == "merged"
        patch.setattr(packed_model, "MERGED_PARAMS", 10**9 if merged else 0)
        yield merged


def adapter(model: PackedModel, rank: int, *names: str) -> AdapterWeights:
    pairs = {
        name: (torch.randn(rank, 32), torch.randn(model.base[name].size(0), rank)) for name in names
    }
    return AdapterWeights(model, pairs, 0.7)


def full(model: PackedModel) -> FullWeights:
    weights = FullWeights(model)
    weights.flat.add_(torch.randn_like(weights.flat))
    return weights


def own_product(lane: LaneWeights, inputs: torch.Tensor) -> torch.Tensor:
    weight, bias = lane.joined(QKV)
    outputs = inputs @ weight.t() + bias
    lane.adapt(QKV, inputs, outputs)
    return outputs


def test_rows_are_equally_many_for_each_lane_of_a_stack(model, merges) -> None:
    lanes = [full(model), full(model), *(adapter(model, 2, QKV[0]) for _ in range(2))]
    stacks = Stacks(model, lanes)
    rows = stacks.rows(np.array([2, 5, 1, 3]))
    if merges:  # all of one kind: five rows each
        items = [0, 1, 1, 1, 1, 2, 3, 4, 5, 6, 7, 7, 7, 7, 7, 8, 9, 10, 10, 10]
        assert rows.place.tolist() == [0, 1, 5, 6, 7, 8, 9, 10, 15, 16, 17]
    else:  # the adapters have at least four
        items = [0, 1, 1, 1, 1, 2, 3, 4, 5, 6, 7, 7, 7, 7, 8, 9, 10, 10]
        assert rows.place.tolist() == [0, 1, 5, 6, 7, 8, 9, 10, 14, 15, 16]
    assert rows.item.tolist() == items
    assert np.bincount(rows.owner).tolist() == ([5] * 4 if merges else [5, 5, 4, 4])
    later = stacks.rows(np.array([0, 4, 4, 0]))  # the first and the last lane have ended
    assert later.item.tolist() == [*range(8)]
    assert later.owner.tolist() == [1] * 4 + [2] * 4


@pytest.mark.parametrize("counts", [[7, 4, 5, 6], [0, 9, 0, 6], [0, 0, 8, 0]])
def test_a_product_of_many_is_that_of_each(model, merges, counts) -> None:
    lanes = [
        full(model),
        full(model),
        adapter(model, 3, QKV[0], QKV[2]),
        adapter(model, 16, QKV[0], QKV[2]),
    ]
    rows = Stacks(model, lanes).rows(np.array(counts))
    inputs = torch.randn(rows.item.size, 32)
    outputs = rows.layers.linear(QKV, inputs)
    for number in np.unique(rows.owner):
        own = torch.from_numpy(np.flatnonzero(rows.owner == number))
        expected = own_product(lanes[number], inputs[own])
        assert torch.allclose(outputs[own], expected, rtol=1e-5, atol=1e-4)


def test_adapters_of_a_small_model_are_stacked_with_full_lanes(model, merges) -> None:
    lanes = [full(model), adapter(model, 2, QKV[0]), adapter(model, 20, QKV[0])]
    kinds = [type(stack) for stack, _ in Stacks(model, lanes).stacks]
    shared = [DenseStack, AdapterStack, AdapterStack]  # ranks filled up to 16 and to 32
    assert kinds == ([DenseStack] if merges else shared)


def test_the_library_s_model_reads_the_vector_that_lanes_copy(model) -> None:
    ids = torch.arange(5).unsqueeze(0)
    before = model.template(input_ids=ids).logits
    model.flat.mul_(2)
    assert not torch.allclose(model.template(input_ids=ids).logits, before)
