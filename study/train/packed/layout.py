"""From lists of token ids to one token axis: which token lies where, and what it may look at."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from study.train.packed.attention import PrefixAttention, PrefixBlock
from study.train.packed.tree import Ints, Tree, prompt_tree


@dataclass(frozen=True)
class LaneRows:
    """What one lane brings to a pass.

    Attributes:
        prompts: Token ids of each distinct prompt.
        groups: Index into `prompts` of each row.
        completions: Token ids of each row; a pass reads all but the last of each.
        padded: Lengths that attention pads prompts and completions to.
        from_padding: Whether positions count from the padding on, as in TRL's training passes, or
            from a prompt's first token, as in the library's ``generate``.
        block: Rows of another number attend apart.
    """

    prompts: Sequence[Sequence[int]]
    groups: Sequence[int]
    completions: Sequence[Sequence[int]]
    padded: tuple[int, int]
    from_padding: bool = True
    block: int = 0

    @cached_property
    def tree(self) -> Tree:
        """Its distinct tokens."""
        if not (self.completions or self.from_padding):
            return prompt_tree(tuple(map(tuple, self.prompts)))
        padded = self.padded[0] if self.from_padding else None
        return Tree(self.prompts, self.groups, self.completions, padded)


@dataclass
class Layout:
    """The token axis of a pass: lane after lane, in each the tokens of its tree.

    Attributes:
        ids: Token ids [tokens].
        positions: Position [tokens] of each token.
        sizes: Tokens of each lane.
        attention: The attention of the pass.
        blocks: Rows by padded length.
        sources: Position on the axis of the token that predicts each completion token, row by row.
        targets: The predicted tokens, in the same order.
        row_of: Row of each prediction, counted over all lanes.
        prediction_sizes: Predictions of each lane.
        last_prompt_tokens: Position on the axis of each prompt's last token.
    """

    ids: Tensor
    positions: Tensor
    sizes: list[int]
    attention: PrefixAttention
    blocks: list[PrefixBlock]
    sources: Tensor
    targets: Tensor
    row_of: Tensor
    prediction_sizes: list[int]
    last_prompt_tokens: Tensor


def lay_out(
    lanes: Sequence[LaneRows], device: torch.device, sizes: Sequence[int] | None = None
) -> Layout:
    """Lays the tokens of lanes out; at least one prompt in all.

    Args:
        lanes: What each lane brings.
        device: Where the tensors go.
        sizes: Tokens of each lane, where more than there are: what is missing is filled up.
    """
    builder = _Builder()
    blocks: dict[tuple[tuple[int, int], int], _Block] = {}
    for lane, size in zip(lanes, sizes or [0] * len(lanes), strict=True):
        block = blocks.setdefault((lane.padded, lane.block), _Block(*lane.padded))
        builder.add(lane, size, block)

    def tensor(parts: Sequence[Ints]) -> Tensor:
        return torch.from_numpy(np.concatenate(parts)).to(device)

    built = [block.build(device) for block in blocks.values()]
    return Layout(
        ids=tensor(builder.ids),
        positions=tensor(builder.positions),
        sizes=builder.sizes,
        attention=PrefixAttention(built, tensor([_places(blocks.values(), builder.tokens)])),
        blocks=built,
        sources=tensor(builder.sources),
        targets=tensor(builder.targets),
        row_of=tensor(builder.row_of),
        prediction_sizes=builder.prediction_sizes,
        last_prompt_tokens=tensor(builder.last_prompt_tokens),
    )


@dataclass
class _Builder:
    """Grows the axis lane by lane."""

    ids: list[Ints] = field(default_factory=list)
    positions: list[Ints] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    sources: list[Ints] = field(default_factory=list)
    targets: list[Ints] = field(default_factory=list)
    row_of: list[Ints] = field(default_factory=list)
    prediction_sizes: list[int] = field(default_factory=list)
    last_prompt_tokens: list[Ints] = field(default_factory=list)
    tokens: int = 0
    rows: int = 0

    def add(self, lane: LaneRows, size: int, block: _Block) -> None:
        tree, start = lane.tree, self.tokens
        missing = np.zeros(max(0, size - tree.ids.size), np.int64)
        self.ids += [tree.ids, missing]
        self.positions += [tree.positions, missing]
        self.sizes.append(tree.ids.size + missing.size)
        self.tokens += self.sizes[-1]
        self.last_prompt_tokens.append(start + np.array([p[-1] for p in tree.prompts], np.int64))
        self._predictions(lane, start)
        block.add(tree, start, lane.groups)

    def _predictions(self, lane: LaneRows, start: int) -> None:
        tree = lane.tree
        before = (
            [tree.prompts[group][-1], *own]
            for group, own in zip(lane.groups, tree.completions, strict=True)
        )
        self.sources.append(start + _flat([*before]))
        self.targets.append(_flat(lane.completions))
        lengths = [len(completion) for completion in lane.completions]
        self.row_of.append(self.rows + np.repeat(np.arange(len(lengths)), lengths))
        self.prediction_sizes.append(sum(lengths))
        self.rows += len(lengths)


@dataclass
class _Block:
    """Grows one attention block lane by lane."""

    prompt: int
    completion: int
    prompts: list[list[int]] = field(default_factory=list)
    completions: list[list[int]] = field(default_factory=list)
    groups: list[int] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)
    fed: list[int] = field(default_factory=list)

    def add(self, tree: Tree, start: int, groups: Sequence[int]) -> None:
        before = len(self.prompts)
        for prompt in tree.prompts:
            places = [start + node for node in prompt]
            self.prompts.append([places[0]] * (self.prompt - len(places)) + places)
            self.lengths.append(len(places))
        for group, completion in zip(groups, tree.completions, strict=True):
            places = [start + node for node in completion]
            filling = [start + tree.prompts[group][0]] * (self.completion - len(places))
            self.completions.append(places + filling)
            self.fed.append(len(places))
            self.groups.append(before + group)

    def build(self, device: torch.device) -> PrefixBlock:
        shown = torch.from_numpy(self._in_prompts).to(device)[:, None, None]
        causal = torch.ones(self.prompt, self.prompt, dtype=torch.bool, device=device).tril()
        # A query in the padding sees itself: softmax over nothing would be NaN.
        diagonal = torch.eye(self.prompt, dtype=torch.bool, device=device)
        of_prompts = torch.nn.functional.pad((shown & causal) | diagonal, (0, self.completion))
        size = self.completion
        so_far = torch.ones(size, size, dtype=torch.bool, device=device).tril()
        rows = torch.tensor(self.groups, dtype=torch.long, device=device)
        of_rows = torch.cat(
            [
                shown.index_select(0, rows).expand(-1, 1, size, -1),
                so_far.expand(rows.numel(), 1, -1, -1),
            ],
            -1,
        )
        return PrefixBlock(
            prompts=torch.tensor(self.prompts, device=device),
            completions=torch.tensor(self.completions, dtype=torch.long, device=device).view(
                rows.numel(), size
            ),
            groups=rows,
            prompt_mask=of_prompts,
            completion_mask=of_rows,
        )

    @property
    def _in_prompts(self) -> NDArray[np.bool_]:
        """Which columns of padded prompts hold tokens."""
        return np.arange(self.prompt) >= self.prompt - np.array(self.lengths)[:, None]

    def real(self) -> tuple[Ints, Ints]:
        """Places on the axis of its tokens, and their places among its padded ones."""
        prompts, rows = np.array(self.prompts), np.array(self.completions, np.int64)
        in_prompts = np.flatnonzero(self._in_prompts)
        in_rows = np.flatnonzero(np.arange(self.completion) < np.array(self.fed)[:, None])
        axis = np.concatenate([prompts.reshape(-1)[in_prompts], rows.reshape(-1)[in_rows]])
        return axis, np.concatenate([in_prompts, prompts.size + in_rows])

    @property
    def padded_tokens(self) -> int:
        """Prompt and completion tokens, padding included."""
        return len(self.prompts) * self.prompt + len(self.completions) * self.completion


def _places(blocks: Iterable[_Block], tokens: int) -> Ints:
    """For each token of the axis its place among the padded tokens of all blocks; one of several.

    What only fills the axis up has the place of somebody: nobody reads what becomes of it.
    """
    places, before = np.zeros(tokens, np.int64), 0
    for block in blocks:
        axis, padded = block.real()
        places[axis] = before + padded
        before += block.padded_tokens
    return places


def _flat(rows: Sequence[Sequence[int]]) -> Ints:
    return np.array([token for row in rows for token in row], np.int64)
