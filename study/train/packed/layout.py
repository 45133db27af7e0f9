"""From lists of token ids to one token axis: which token lies where, and what it may look at."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from study.train.packed.attention import PrefixAttention, PrefixBlock

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class LaneRows:
    """What one lane brings to a pass.

    Attributes:
        prompts: Token ids of each distinct prompt.
        groups: Index into `prompts` of each row.
        completions: Token ids of each row; a pass reads all but the last of each.
        padded: Lengths that attention pads prompts and completions to.
        block: Rows of another number attend apart.
        size: Tokens that the lane has at least; what is missing is filled up at its end.
    """

    prompts: Sequence[Sequence[int]]
    groups: Sequence[int]
    completions: Sequence[Sequence[int]]
    padded: tuple[int, int]
    block: int = 0
    size: int = 0


@dataclass
class Layout:
    """The token axis of a pass: lane after lane, in each its prompts and then its completions.

    Attributes:
        ids: Token ids [tokens].
        positions: Position [tokens] of each token in its padded row, which TRL's trainer counts
            from the padding on.
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


def lay_out(lanes: Sequence[LaneRows], device: torch.device) -> Layout:
    """Lays the tokens of lanes out; at least one prompt in all.

    Args:
        lanes: What each lane brings.
        device: Where the tensors go.
    """
    builder = _Builder()
    blocks: dict[tuple[tuple[int, int], int], _Block] = {}
    for lane in lanes:
        block = blocks.setdefault((lane.padded, lane.block), _Block(*lane.padded))
        builder.add(lane, block)

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

    def add(self, lane: LaneRows, block: _Block) -> None:
        lengths = np.array([len(p) for p in lane.prompts], np.int64)
        starts = self.tokens + _before(lengths)
        prompt_end = self.tokens + int(lengths.sum())
        fed = np.array([len(c) - 1 for c in lane.completions], np.int64)
        row_starts = prompt_end + _before(fed)
        groups = np.array(lane.groups, np.int64)
        missing = max(0, lane.size - int(lengths.sum() + fed.sum()))
        rows = [*lane.prompts, *(c[:-1] for c in lane.completions), [0] * missing]
        self.ids.append(_flat(rows))
        longest = lane.padded[0]
        self.positions.append(within(lengths) + np.repeat(longest - lengths, lengths))
        self.positions.append(within(fed) + longest)
        self.positions.append(np.zeros(missing, np.int64))
        self.sizes.append(self.ids[-1].size)
        self.tokens += self.sizes[-1]
        self.last_prompt_tokens.append(starts + lengths - 1)
        self._predictions(lane, row_starts, (starts + lengths - 1)[groups], fed + 1)
        block.add(lengths, starts, fed, row_starts, groups)

    def _predictions(self, lane: LaneRows, starts: Ints, firsts: Ints, lengths: Ints) -> None:
        step = within(lengths)
        before = np.repeat(starts, lengths) + step - 1
        self.sources.append(np.where(step == 0, np.repeat(firsts, lengths), before))
        self.targets.append(_flat(lane.completions))
        self.row_of.append(self.rows + np.repeat(np.arange(lengths.size), lengths))
        self.prediction_sizes.append(int(lengths.sum()))
        self.rows += lengths.size


@dataclass
class _Block:
    """Grows one attention block lane by lane."""

    prompt: int
    completion: int
    prompts: list[Ints] = field(default_factory=list)
    completions: list[Ints] = field(default_factory=list)
    groups: list[Ints] = field(default_factory=list)
    lengths: list[Ints] = field(default_factory=list)
    fed: list[Ints] = field(default_factory=list)
    count: int = 0

    def add(self, lengths: Ints, starts: Ints, fed: Ints, row_starts: Ints, groups: Ints) -> None:
        column = np.arange(self.prompt) - (self.prompt - lengths)[:, None]
        self.prompts.append(np.where(column >= 0, starts[:, None] + column, starts[:, None]))
        step = np.arange(self.completion)
        own = row_starts[:, None] + step
        self.completions.append(np.where(step < fed[:, None], own, starts[groups][:, None]))
        self.groups.append(self.count + groups)
        self.lengths.append(lengths)
        self.fed.append(fed)
        self.count += lengths.size

    def build(self, device: torch.device) -> PrefixBlock:
        groups, lengths = np.concatenate(self.groups), np.concatenate(self.lengths)
        shown = torch.from_numpy(self._shown(lengths)).to(device)[:, None, None]
        causal = torch.ones(self.prompt, self.prompt, dtype=torch.bool, device=device).tril()
        # A query in the padding sees itself: softmax over nothing would be NaN.
        diagonal = torch.eye(self.prompt, dtype=torch.bool, device=device)
        of_prompts = torch.nn.functional.pad((shown & causal) | diagonal, (0, self.completion))
        size = self.completion
        so_far = torch.ones(size, size, dtype=torch.bool, device=device).tril()
        rows = torch.from_numpy(groups).to(device)
        of_rows = torch.cat(
            [
                shown.index_select(0, rows).expand(-1, 1, size, -1),
                so_far.expand(rows.numel(), 1, -1, -1),
            ],
            -1,
        )
        return PrefixBlock(
            prompts=torch.from_numpy(np.concatenate(self.prompts)).to(device),
            completions=torch.from_numpy(np.concatenate(self.completions)).to(device),
            groups=rows,
            prompt_mask=of_prompts,
            completion_mask=of_rows,
        )

    def _shown(self, lengths: Ints) -> NDArray[np.bool_]:
        """Which columns of padded prompts hold tokens."""
        return np.arange(self.prompt) >= (self.prompt - lengths)[:, None]

    def real(self) -> tuple[Ints, Ints]:
        """Places on the axis of its tokens, and their places among its padded ones."""
        prompts, rows = np.concatenate(self.prompts), np.concatenate(self.completions)
        in_prompts = np.flatnonzero(self._shown(np.concatenate(self.lengths)))
        fed = np.concatenate(self.fed)
        in_rows = np.flatnonzero(np.arange(self.completion) < fed[:, None])
        axis = np.concatenate([prompts.reshape(-1)[in_prompts], rows.reshape(-1)[in_rows]])
        return axis, np.concatenate([in_prompts, prompts.size + in_rows])

    @property
    def padded_tokens(self) -> int:
        """Prompt and completion tokens, padding included."""
        return sum(x.size for x in (*self.prompts, *self.completions))


def _places(blocks: Iterable[_Block], tokens: int) -> Ints:
    """For each token of the axis its place among the padded tokens of all blocks.

    What only fills the axis up has the place of somebody: nobody reads what becomes of it.
    """
    places, before = np.zeros(tokens, np.int64), 0
    for block in blocks:
        axis, padded = block.real()
        places[axis] = before + padded
        before += block.padded_tokens
    return places


def _before(lengths: Ints) -> Ints:
    """Sum of the lengths before each."""
    return np.cumsum(lengths) - lengths


def within(lengths: Ints) -> Ints:
    """0, 1, ... in each of rows of these lengths, row after row."""
    return np.arange(int(lengths.sum())) - np.repeat(_before(lengths), lengths)


def _flat(rows: Sequence[Sequence[int]]) -> Ints:
    return np.array([token for row in rows for token in row], np.int64)
