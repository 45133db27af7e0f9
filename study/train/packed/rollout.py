"""Completions for many lanes at once, with each lane's own random draws.

A lane's draws are those of the library's ``generate`` under the lane's seed: for each new token one
call of ``torch.multinomial`` over all rows, finished ones included, until all have ended
(:mod:`study.train.packed.race`).

Rows of a lane that have the same prompt and so far the same tokens are one *prefix*: the model sees
each prefix once, and its probabilities serve all its rows. At first there is a prefix for each
prompt; a prefix branches where its rows draw different tokens, and is gone when they have ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from study.train.packed.attention import Cache, CachedAttention, gather
from study.train.packed.layout import LaneRows, Layout, lay_out
from study.train.packed.model import PackedModel
from study.train.packed.race import Race
from study.train.packed.stacks import Rows, Stacks
from study.train.packed.tree import Ints
from study.train.packed.weights import LaneWeights


@dataclass(frozen=True)
class Choice:
    """How a lane completes each of its prompts.

    Attributes:
        repeats: Completions of each prompt, side by side.
        generator: Source of the draws; None takes the most probable token.
    """

    repeats: int
    generator: torch.Generator | None


@dataclass(frozen=True)
class Request:
    """What one lane wants completed.

    Attributes:
        weights: The lane's weights.
        prompts: Token ids of each prompt.
        choices: How to complete them; rows come choice by choice.
        temperature: Divides the logits of sampled choices.
        entropy: Whether the entropies of the tokens' distributions are asked for.
    """

    weights: LaneWeights
    prompts: Sequence[Sequence[int]]
    choices: Sequence[Choice]
    temperature: float
    entropy: bool

    @property
    def longest(self) -> int:
        """Tokens of the longest prompt, which the others are padded to."""
        return max(map(len, self.prompts))

    @property
    def rows(self) -> int:
        """Completions of all choices."""
        return len(self.prompts) * sum(choice.repeats for choice in self.choices)


@dataclass(frozen=True)
class Completions:
    """What a lane got.

    Attributes:
        ids: Token ids of each row, choice by choice, end token included.
        entropy: Sum [rows] over a row's tokens of the entropy of their distribution, in nats; zero
            if it was not asked for.
        finite: Whether all probabilities were finite; if not, the rest means nothing.
    """

    ids: list[list[int]]
    entropy: Tensor
    finite: bool


@torch.no_grad()
def complete(
    model: PackedModel, requests: Sequence[Request], end: Sequence[int], length: int
) -> list[Completions]:
    """Completes the prompts of many lanes.

    Args:
        model: The model.
        requests: One for each lane, each with at least one prompt.
        end: Tokens that end a completion.
        length: Most tokens of a completion.
    """
    # Lanes of one kind side by side: their rows are multiplied together. Among them those whose
    # prompts are padded alike: their rows attend together.
    keys = [(*request.weights.kind, request.longest) for request in requests]
    order = sorted(range(len(requests)), key=keys.__getitem__)
    found = _Rollout(model, [requests[i] for i in order], end, length).run()
    return [found[order.index(i)] for i in range(len(requests))]


@dataclass
class _Lane:
    """Rows of a lane: where its choices lie among all rows, which rows are in the pass."""

    request: Request
    first: int
    running: list[tuple[Choice, int, int]] = field(default_factory=list)
    finite: bool = True


class _Rollout:
    """One call of :func:`complete`."""

    def __init__(
        self, model: PackedModel, requests: Sequence[Request], end: Sequence[int], length: int
    ) -> None:
        self.model, self.length = model, length
        self.device = model.device
        self.end = torch.tensor(list(end), device=self.device)
        self.lanes = _lanes(requests)
        self.lane_of = np.repeat(np.arange(len(requests)), [r.rows for r in requests])
        total = self.lane_of.size
        self.drawn = np.zeros(total, bool)
        for choice, start, stop in (span for lane in self.lanes for span in lane.running):
            self.drawn[start:stop] = choice.generator is not None
        self.tokens = torch.zeros(total, length, dtype=torch.long, device=self.device)
        self.lengths = np.zeros(total, np.int64)
        self.entropy = torch.zeros(total, device=self.device)
        self.open = np.ones(total, bool)
        self.prefix = _prompt_of(requests)  # of each open row; those of one prompt side by side
        self.stacks = Stacks(model, [request.weights for request in requests])
        self.prompt_lengths = np.array([len(p) for request in requests for p in request.prompts])

    def run(self) -> list[Completions]:
        """Prefills, then decodes until every row has ended."""
        logits = self._prefill()
        race = Race(self.open.size, logits.size(1), self.device)
        for step in range(self.length):
            self._choose(logits, race, step)
            if step + 1 == self.length or not self.open.any():
                break
            logits = self._decode(self._branch(step, logits.size(1)), step)
        return self._results()

    def _prefill(self) -> Tensor:
        """Passes each prompt once and fills the caches; the logits of its next token."""
        requests = [lane.request for lane in self.lanes]
        # Rows of neighbours whose prompts are padded alike attend together.
        runs = np.cumsum([a.longest != b.longest for a, b in pairwise([requests[0], *requests])])
        lanes = [
            LaneRows(r.prompts, [], [], (r.longest, 0), from_padding=False, block=run)
            for r, run in zip(requests, runs.tolist(), strict=True)
        ]
        tokens = self.stacks.rows(np.array([lane.tree.ids.size for lane in lanes]))
        layout = lay_out(lanes, self.device, np.bincount(tokens.owner).tolist())
        self.caches = caches = self._empty_caches(layout)

        def attend(layer: int, q: Tensor, k: Tensor, v: Tensor, scale: float) -> Tensor:
            for cache, block in zip(caches.caches, layout.blocks, strict=True):
                cache.add_layer(gather(k, block.prompts), gather(v, block.prompts))
            return layout.attention(layer, q, k, v, scale)

        rows = self.stacks.rows(np.array([len(r.prompts) for r in requests]))
        wanted = (layout.last_prompt_tokens[self._tensor(rows.item)], rows.layers)
        hidden = self.model.hidden(layout.ids, layout.positions, tokens.layers, attend, wanted)
        self._go_on(rows, np.arange(self.prompt_lengths.size))
        self.prefix = rows.place[self.prefix]
        return self.model.logits(hidden, rows.layers)

    def _empty_caches(self, layout: Layout) -> CachedAttention:
        """A cache for each block of prompts."""
        blocks = [block.prompts for block in layout.blocks]
        lengths = torch.split(self._tensor(self.prompt_lengths), [b.size(0) for b in blocks])
        read = self.length - 1  # the last token is not
        pairs = zip(lengths, blocks, strict=True)
        return CachedAttention(
            [Cache(own, block.size(1), block.size(1) + read) for own, block in pairs]
        )

    def _choose(self, logits: Tensor, race: Race, step: int) -> None:
        """Chooses a token for each open row, and closes the rows that end with it."""
        temperatures = np.array([lane.request.temperature for lane in self.lanes], np.float32)
        scaled = logits
        if (temperatures != 1).any():
            scaled = logits / self._tensor(temperatures[self.rows.owner]).unsqueeze(1)
        probabilities = torch.softmax(scaled, -1)
        if not bool(torch.isfinite(probabilities.sum())):
            self._drop_diverged(probabilities)
        for lane in self.lanes:
            for choice, start, stop in lane.running:
                if choice.generator is not None:
                    race.draw(start, stop, choice.generator)
        rows = np.flatnonzero(self.open)
        index, place = self._tensor(rows), self._tensor(self.prefix[rows])
        tokens = self._tokens(logits, probabilities, race, rows)
        self.tokens[index, step] = tokens
        self.lengths[rows] = step + 1
        if any(lane.request.entropy for lane in self.lanes):
            self.entropy[index] += torch.special.entr(probabilities).sum(-1)[place]
        self._close(rows[torch.isin(tokens, self.end).cpu().numpy()])

    def _tokens(self, logits: Tensor, probabilities: Tensor, race: Race, rows: Ints) -> Tensor:
        """The next token of open rows: drawn for some, the most probable one for others."""
        tokens = torch.empty(rows.size, dtype=torch.long, device=self.device)
        drawn = self.drawn[rows]
        for is_drawn, scores in ((True, probabilities), (False, logits)):
            chosen = np.flatnonzero(drawn == is_drawn)
            if chosen.size:
                own = scores.index_select(0, self._tensor(self.prefix[rows[chosen]]))
                best = race.winners(own, self._tensor(rows[chosen])) if is_drawn else own.argmax(-1)
                tokens[self._tensor(chosen)] = best
        return tokens

    def _close(self, rows: Ints) -> None:
        self.open[rows] = False
        for lane in self.lanes:
            lane.running = [span for span in lane.running if self.open[span[1] : span[2]].any()]

    def _drop_diverged(self, probabilities: Tensor) -> None:
        """Ends the lanes of prefixes whose probabilities are not finite; others never notice."""
        finite = torch.isfinite(probabilities).all(-1).cpu().numpy()
        for number in np.unique(self.rows.owner[~finite]):
            self.lanes[number].finite = False
            self._close(np.flatnonzero(self.lane_of == number))

    def _branch(self, step: int, vocabulary: int) -> Tensor:
        """Goes on to the prefixes that open rows have now; the last token of each."""
        rows = np.flatnonzero(self.open)
        tokens = self.tokens[:, step].cpu().numpy()[rows]
        keys, first, own = np.unique(
            self.prefix[rows] * vocabulary + tokens, return_index=True, return_inverse=True
        )
        counts = np.bincount(self.lane_of[rows[first]], minlength=len(self.lanes))
        self._go_on(self.stacks.rows(counts), keys // vocabulary)
        self.prefix[rows] = self.rows.place[own]
        return self._tensor(keys[self.rows.item] % vocabulary)

    def _go_on(self, rows: Rows, parents: Ints) -> None:
        """Goes on with rows whose prefixes continue those of `parents`."""
        self.rows = rows
        parents = parents[rows.item]
        self.prompt_lengths = self.prompt_lengths[parents]
        self.caches.keep(parents, self.device)

    def _decode(self, tokens: Tensor, step: int) -> Tensor:
        """Passes the last token of each prefix; the logits of the next."""
        self.caches.step = step
        positions, layers = self._tensor(self.prompt_lengths + step), self.rows.layers
        return self.model.logits(self.model.hidden(tokens, positions, layers, self.caches), layers)

    def _tensor(self, values: NDArray[Any]) -> Tensor:
        return torch.from_numpy(values).to(self.device)

    def _results(self) -> list[Completions]:
        ids = self.tokens.tolist()
        found = []
        for lane in self.lanes:
            span = range(lane.first, lane.first + lane.request.rows)
            completions = [ids[row][: self.lengths[row]] for row in span]
            entropy = self.entropy[lane.first : lane.first + lane.request.rows]
            found.append(Completions(completions, entropy, lane.finite))
        return found


def _lanes(requests: Sequence[Request]) -> list[_Lane]:
    """A lane for each request, all of its choices running."""
    lanes, total = [], 0
    for request in requests:
        lane = _Lane(request, total)
        for choice in request.choices:
            stop = total + choice.repeats * len(request.prompts)
            lane.running.append((choice, total, stop))
            total = stop
        lanes.append(lane)
    return lanes


def _prompt_of(requests: Sequence[Request]) -> Ints:
    """Prompt of each row, counted over all lanes."""
    found, first = [], 0
    for request in requests:
        prompts = first + np.arange(len(request.prompts))
        found += [np.repeat(prompts, choice.repeats) for choice in request.choices]
        first += prompts.size
    return np.concatenate(found)
