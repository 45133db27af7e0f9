"""Rows that begin alike share their tokens: by hand."""

from __future__ import annotations

import torch

from study.train.packed.layout import LaneRows, lay_out
from study.train.packed.tree import Tree


def test_equal_beginnings_are_one_path() -> None:
    tree = Tree([[1, 2, 3], [1, 2, 4]], [0, 0, 1], [[5, 6, 7], [5, 8], [5, 6]], None)
    assert tree.ids.tolist() == [1, 2, 3, 4, 5, 6, 5]
    assert tree.positions.tolist() == [0, 1, 2, 2, 3, 4, 3]
    assert tree.prompts == [[0, 1, 2], [0, 1, 3]]
    # the last token of a completion is predicted, not read; the third row has another prompt
    assert tree.completions == [[4, 5], [4], [6]]


def test_positions_from_the_padding_on_part_prompts_of_other_lengths() -> None:
    tree = Tree([[1, 2], [1], [1, 2]], [], [], 3)
    assert tree.ids.tolist() == [1, 2, 1]
    assert tree.positions.tolist() == [1, 2, 2]
    assert tree.prompts == [[0, 1], [2], [0, 1]]


def test_a_row_that_shares_attends_as_a_row_alone() -> None:
    shared = LaneRows([[1, 2]], [0, 0, 0], [[5, 6, 7], [5, 6, 8, 9], [5, 3]], (3, 4))
    layout = lay_out([shared], torch.device("cpu"))
    assert layout.ids.tolist() == [1, 2, 5, 6, 8]  # last tokens are predicted only
    assert layout.ids[layout.sources].tolist() == [2, 5, 6, 2, 5, 6, 8, 2, 5]
    assert layout.targets.tolist() == [5, 6, 7, 5, 6, 8, 9, 5, 3]
    torch.manual_seed(0)
    query, key, value = torch.randn(5, 2, 8), torch.randn(5, 1, 8), torch.randn(5, 1, 8)
    got = layout.attention(0, query, key, value, 0.5)
    for token in range(5):
        scores = torch.einsum("hd,kd->hk", query[token], key[: token + 1, 0]) * 0.5
        assert torch.allclose(got[token], scores.softmax(-1) @ value[: token + 1, 0], atol=1e-6)


def test_lanes_are_filled_up_to_a_size() -> None:
    lane = LaneRows([[1, 2]], [], [], (2, 0), from_padding=False)
    layout = lay_out([lane, lane], torch.device("cpu"), [4, 2])
    assert layout.ids.tolist() == [1, 2, 0, 0, 1, 2]
    assert layout.sizes == [4, 2]
    assert layout.last_prompt_tokens.tolist() == [1, 5]
