"""Matrices of one module type or depth summed up."""

import pytest

from study.probes.weights.groups import by_depth, by_module, depth, module_type, summarized
from study.probes.weights.matrix import MatrixResult
from study.probes.weights.sparsity import Unchanged


def result(name, size, observed, draws):
    return MatrixResult(
        name=name,
        shape=(1, size),
        unchanged=Unchanged(size, 0, 0, 0, None),
        observed=observed,
        null={"gaussian": draws, "turned": draws},
    )


def test_names():
    assert module_type("model.layers.3.self_attn.q_proj.weight") == "q_proj"
    assert module_type("model.layers.3.self_attn.q_proj.bias") == "q_proj.bias"
    assert depth("model.layers.13.mlp.up_proj.weight") == 13
    assert depth("model.embed_tokens.weight") is None


def test_groups_are_by_type_and_by_ascending_depth():
    names = [f"model.layers.{i}.{m}.weight" for i in (0, 10, 2) for m in ("a", "b")]
    results = [result(name, 1, {}, []) for name in names]
    assert {k: len(v) for k, v in by_module(results).items()} == {"a": 3, "b": 3}
    assert list(by_depth(results)) == ["0", "2", "10"]


def test_shares_are_weighed_by_size_and_other_numbers_are_not():
    """Of 100 and 300 weights 10 and 90 are unchanged: 100 of 400."""
    one = result(
        "a.0.x.weight",
        100,
        {"unchanged_bf16": 0.1, "stable_rank": 1.0, "intruders": None},
        [{"stable_rank": 1.0, "intruders": 1.0}, {"stable_rank": 2.0, "intruders": None}],
    )
    other = result(
        "a.1.x.weight",
        300,
        {"unchanged_bf16": 0.3, "stable_rank": 3.0, "intruders": None},
        [{"stable_rank": 4.0, "intruders": 3.0}, {"stable_rank": 1.0, "intruders": None}],
    )
    found = summarized([one, other])
    assert found["matrices"] == 2
    assert found["counts"] == Unchanged(400, 0, 0, 0, None).__dict__
    assert found["observed"]["unchanged_bf16"] == pytest.approx(0.25)
    assert found["observed"]["stable_rank"] == 2.0
    assert found["observed"]["intruders"] is None
    # Means by draw are 2.5 and 1.5; a draw without a value leaves no range.
    null = found["null"]["turned"]
    assert null["stable_rank"] == {"mean": 2.0, "low": 1.5, "high": 2.5}
    assert null["intruders"] is None
