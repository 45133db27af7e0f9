"""Attention over token axes without padding: prompts that groups share, and single new tokens.

Attention is the one place where rows are padded: prompts on the left to the longest of the lane's
batch, completions on the right to its longest. These are the shapes that TRL's trainer meets, and
where gradients are wanted the products are the library's (``scaled_dot_product_attention``), whose
rounding depends on where the padding lies: so the numbers are TRL's, and nothing of a lane depends
on its neighbours. What pads a row is a token of the lane itself behind the mask: not even a NaN
reaches another lane.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention


@dataclass(frozen=True)
class PrefixBlock:
    """Rows whose prompts and completions are padded to the same lengths.

    G groups of P prompt tokens, padding on the left; R rows of C completion tokens, padding on the
    right. A row attends to its group's prompt and to its own completion so far.

    Attributes:
        prompts: Place [G, P] of each prompt token on the token axis; padding is the group's first.
        completions: Place [R, C] of each completion token; padding is the first of its prompt.
        groups: Group [R] of each row.
        prompt_mask: What prompt tokens see of their own prompt: [G, 1, P, P + C], true where seen.
        completion_mask: What completion tokens see: [R, 1, C, P + C].
    """

    prompts: Tensor
    completions: Tensor
    groups: Tensor
    prompt_mask: Tensor
    completion_mask: Tensor


class PrefixAttention:
    """The attention of a training pass or a prefill."""

    def __init__(self, blocks: Sequence[PrefixBlock], places: Tensor) -> None:
        """Covers the tokens of `blocks`, which together are all tokens of the pass.

        Args:
            blocks: Rows by padded length.
            places: For each token of the axis its place among the padded ones: those of the first
                block's prompts, of its completions, of the second block's prompts, and so on.
        """
        self._blocks, self._places = blocks, places

    def __call__(
        self, layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float
    ) -> Tensor:
        """Returns what every token attends to: [tokens, heads, d]."""
        found: list[Tensor] = []
        for block in self._blocks:
            keys, values = gather(key, block.prompts), gather(value, block.prompts)
            size = block.completions.size(1)
            padded = _beyond(keys, size), _beyond(values, size)
            found.append(_attend(query, block.prompts, padded, block.prompt_mask, scale))
            if block.completions.numel():
                rows = (
                    torch.cat(
                        [shared.index_select(0, block.groups), gather(own, block.completions)], 2
                    )
                    for shared, own in ((keys, key), (values, value))
                )
                pair = next(rows), next(rows)
                found.append(_attend(query, block.completions, pair, block.completion_mask, scale))
        return torch.cat(found).index_select(0, self._places)


def _beyond(prompts: Tensor, size: int) -> Tensor:
    """Keys or values of prompts with so many columns more, which nothing looks at."""
    return torch.cat([prompts, prompts[:, :, :1].expand(-1, -1, size, -1)], 2)


def gather(tokens: Tensor, places: Tensor) -> Tensor:
    """Tokens [T, heads, d] at places [B, S], head by head: [B, heads, S, d]."""
    found = tokens.index_select(0, places.view(-1))
    return found.view(*places.shape, *tokens.shape[1:]).transpose(1, 2)


def _attend(
    query: Tensor, places: Tensor, pair: tuple[Tensor, Tensor], mask: Tensor, scale: float
) -> Tensor:
    """Attention of the tokens at `places` [B, Q] to keys and values [B, kv, S, d]: [B Q, heads, d].

    Heads that share keys are so many queries more, instead of copies of the keys for each.
    """
    (rows, count), (heads, width), kv = places.shape, query.shape[1:], pair[0].size(1)
    shared = heads // kv
    queries = gather(query, places).reshape(rows, kv, shared * count, width)
    seen = mask.repeat(1, 1, shared, 1)
    output = scaled_dot_product_attention(queries, *pair, attn_mask=seen, scale=scale)
    by_head = output.reshape(rows, heads, count, width)
    return by_head.transpose(1, 2).reshape(rows * count, heads, width)


class Cache:
    """Keys and values so far of rows whose prompts are padded to the same length.

    Columns 0 to P - 1 hold the prompts, padded on the left, columns from P on the new tokens. All
    columns take part in every step, those to come and the padding behind a mask: so products have
    the same shape at each step, and one large enough for the libraries' fast kernels.
    """

    def __init__(self, prompt_lengths: Tensor, columns: int, total: int) -> None:
        """Builds an empty cache.

        Args:
            prompt_lengths: Tokens [rows] of each row's prompt.
            columns: P.
            total: P plus the most new tokens.
        """
        self._columns, self._total = columns, total
        self._keys: list[Tensor] = []
        self._values: list[Tensor] = []
        places = torch.arange(total, device=prompt_lengths.device)
        starts = (columns - prompt_lengths).unsqueeze(1)
        if not bool(starts.any()):
            starts = starts[:1]  # without padding all rows have one mask
        seen = (places >= starts) & (places < columns)
        self._mask = torch.zeros(seen.shape, device=places.device).masked_fill_(~seen, -math.inf)

    @property
    def rows(self) -> int:
        """Rows that it holds."""
        return self._keys[0].size(0)

    def add_layer(self, keys: Tensor, values: Tensor) -> None:
        """Takes in the prompts' keys and values of the next layer: [rows, kv, P, d] each."""
        for store, prompt in ((self._keys, keys), (self._values, values)):
            buffer = prompt.new_zeros(prompt.size(0), prompt.size(1), self._total, prompt.size(3))
            buffer[:, :, : self._columns] = prompt
            store.append(buffer)

    def keep(self, rows: Tensor) -> None:
        """Keeps the rows of an index, in its order."""
        if self._mask.size(0) > 1:
            self._mask = self._mask.index_select(0, rows)
        self._keys = [keys.index_select(0, rows) for keys in self._keys]
        self._values = [values.index_select(0, rows) for values in self._values]

    def attend(
        self, layer: int, step: int, query: Tensor, key: Tensor, value: Tensor, scale: float
    ) -> Tensor:
        """Adds new token number `step` of each row; what it attends to: [rows, heads, d]."""
        keys, values = self._keys[layer], self._values[layer]
        column = self._columns + step
        keys[:, :, column], values[:, :, column] = key, value
        self._mask[:, column] = 0
        rows, kv, total, width = keys.shape
        batch = rows * kv
        queries = query.reshape(batch, -1, width)  # heads that share keys, as so many queries
        logits = torch.bmm(queries, keys.view(batch, total, width).transpose(1, 2)).mul_(scale)
        logits.view(rows, -1, total).add_(self._mask.unsqueeze(1))
        shares = torch.softmax(logits, -1)
        return torch.bmm(shares, values.view(batch, total, width)).view(rows, -1, width)


class CachedAttention:
    """The attention of decoding: one new token for each row of several caches, in their order.

    Attributes:
        caches: Those that still have rows.
        step: Number of the new token.
    """

    def __init__(self, caches: Sequence[Cache]) -> None:
        """Decodes the rows of `caches`, side by side."""
        self.caches = caches
        self.step = 0

    def keep(self, kept: NDArray[np.int64], device: torch.device) -> None:
        """Keeps the rows of an ascending index, some perhaps several times; empty caches go."""
        start, staying = 0, []
        for cache in self.caches:
            stop = start + cache.rows
            own = kept[(kept >= start) & (kept < stop)] - start
            if own.size:
                staying.append(cache)
            if not np.array_equal(own, np.arange(cache.rows)):
                cache.keep(torch.from_numpy(own).to(device))
            start = stop
        self.caches = staying

    def __call__(
        self, layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float
    ) -> Tensor:
        """Adds one token for each row and returns what it attends to: [rows, heads, d]."""
        found, start = [], 0
        for cache in self.caches:
            own = slice(start, start + cache.rows)
            found.append(cache.attend(layer, self.step, query[own], key[own], value[own], scale))
            start += cache.rows
        return torch.cat(found)
