"""Where tokens lie on the axis of a pass, worked out by hand, and what attention makes of it."""

from __future__ import annotations

import torch

from study.train.packed.layout import LaneRows, lay_out

CPU = torch.device("cpu")
FIRST = LaneRows(
    prompts=[[1, 2, 3], [4]],
    groups=[0, 0, 1],
    completions=[[5, 6], [7], [8, 9, 10]],
    padded=(3, 3),
)
SECOND = LaneRows(prompts=[[11, 12]], groups=[0], completions=[[13, 14]], padded=(2, 2))


def test_the_axis_holds_prompts_once_and_completions_without_their_last_token() -> None:
    layout = lay_out([FIRST, SECOND], CPU)
    assert layout.ids.tolist() == [1, 2, 3, 4, 5, 8, 9, 11, 12, 13]
    assert layout.sizes == [7, 3]
    # positions are those of rows padded to three prompt tokens, then to two
    assert layout.positions.tolist() == [0, 1, 2, 2, 3, 3, 4, 0, 1, 2]
    assert layout.last_prompt_tokens.tolist() == [2, 3, 8]


def test_each_completion_token_is_predicted_by_the_token_before_it() -> None:
    layout = lay_out([FIRST, SECOND], CPU)
    assert layout.targets.tolist() == [5, 6, 7, 8, 9, 10, 13, 14]
    assert layout.ids[layout.sources].tolist() == [3, 5, 3, 4, 8, 9, 12, 13]
    assert layout.row_of.tolist() == [0, 0, 1, 2, 2, 2, 3, 3]
    assert layout.prediction_sizes == [6, 2]


def test_attention_equals_that_of_each_row_alone() -> None:
    layout = lay_out([FIRST, SECOND], CPU)
    torch.manual_seed(0)
    query = torch.randn(10, 4, 8)
    key, value = torch.randn(10, 2, 8), torch.randn(10, 2, 8)
    got = layout.attention(0, query, key, value, 0.3)
    # Axis places of each row's tokens: prompt and completion.
    for row in ([0, 1, 2, 4], [0, 1, 2], [3, 5, 6], [7, 8, 9]):
        expected = _causal(query[row], key[row], value[row], 0.3)
        assert torch.allclose(got[row], expected, atol=1e-6)


def test_a_nan_in_one_lane_stays_there() -> None:
    layout = lay_out([FIRST, SECOND], CPU)
    clean = torch.randn(10, 2, 8)
    spoilt = clean.clone()
    spoilt[:7] = torch.nan
    got = layout.attention(0, spoilt, spoilt, spoilt, 1.0)
    expected = layout.attention(0, clean, clean, clean, 1.0)
    assert torch.equal(got[7:], expected[7:])
    assert got[:7].isnan().all()


def _causal(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, scale: float):
    key, value = (x.repeat_interleave(2, 1) for x in (key, value))
    scores = torch.einsum("qhd,khd->hqk", query, key) * scale
    scores += torch.full(scores.shape[-2:], -torch.inf).triu(1)
    return torch.einsum("hqk,khd->qhd", scores.softmax(-1), value)
