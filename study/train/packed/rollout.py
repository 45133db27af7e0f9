"""Completions for many lanes at once, with each lane's own random draws.

A lane's draws are those of the library's ``generate`` under the lane's seed: for each new token one
call of ``torch.multinomial`` over all rows, finished ones included, until all have ended.
``multinomial`` with one sample divides the probabilities by exponential draws and takes the
largest quotient (the exponential race), so the draws are made for all rows and only the quotients
of rows that go on are formed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from study.train.packed.attention import Cache, CachedAttention, gather
from study.train.packed.layers import PackedModel, Segments
from study.train.packed.layout import LaneRows, lay_out, within
from study.train.packed.weights import LaneWeights

DROP_SHARE = 0.125
"""A lane's finished rows leave the pass once they are this share of its rows in it."""


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
    # Lanes whose prompts are padded alike side by side: their rows attend together. Among them
    # those that share the base: their rows are multiplied together.
    keys = [(request.longest, request.weights.shares_base) for request in requests]
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
        self.device = model.template.device
        self.end = torch.tensor(list(end), device=self.device)
        self.lanes: list[_Lane] = []
        total = 0
        for request in requests:
            lane = _Lane(request, total)
            for choice in request.choices:
                stop = total + choice.repeats * len(request.prompts)
                lane.running.append((choice, total, stop))
                total = stop
            self.lanes.append(lane)
        self.total = total
        self.lane_of = np.repeat(np.arange(len(requests)), [r.rows for r in requests])
        self.temperature = torch.tensor(
            [r.temperature for r in requests for _ in range(r.rows)], device=self.device
        ).unsqueeze(1)
        self.scaled = any(request.temperature != 1.0 for request in requests)
        self.greedy = [
            span for lane in self.lanes for span in lane.running if span[0].generator is None
        ]
        self.tokens = torch.zeros(total, length, dtype=torch.long, device=self.device)
        self.lengths = np.zeros(total, np.int64)
        self.entropy = torch.zeros(total, device=self.device)

    def run(self) -> list[Completions]:
        """Prefills, then decodes until every row has ended."""
        logits = self._prefill()
        rows = np.arange(self.total)  # rows in the pass, in order
        open_rows = np.ones(self.total, bool)
        draws = torch.ones(self.total, logits.size(1), device=self.device)
        for step in range(self.length):
            tokens = self._choose(logits, rows, open_rows, draws, step)
            if step + 1 == self.length or not open_rows.any():
                break
            kept = self._kept(rows, open_rows)
            if kept.size < rows.size:
                tokens = tokens[torch.from_numpy(kept).to(self.device)]
                self.caches.keep(kept, self.device)
                rows = rows[kept]
            logits = self._decode(rows, tokens, step)
        return self._results()

    def _prefill(self) -> Tensor:
        """Passes each prompt once and fills the caches; the logits of every row's first token."""
        lanes = [lane.request for lane in self.lanes]
        layout = lay_out([LaneRows(r.prompts, [], [], (r.longest, 0)) for r in lanes], self.device)
        lengths = np.array([len(p) for request in lanes for p in request.prompts])
        prompt_of = self._prompt_of()
        self.prompt_lengths = torch.from_numpy(lengths[prompt_of]).to(self.device)
        index, groups = torch.from_numpy(prompt_of).to(self.device), []
        first = 0
        for block in layout.blocks:
            count, columns = block.prompts.shape
            mine = (index >= first) & (index < first + count)
            own = index[mine]
            cache = Cache(self.prompt_lengths[mine], columns, columns + self.length)
            groups.append((cache, block.prompts[own - first]))
            first += count
        self.caches = CachedAttention([cache for cache, _ in groups])

        def attend(layer: int, q: Tensor, k: Tensor, v: Tensor, scale: float) -> Tensor:
            for cache, places in groups:
                cache.add_layer(gather(k, places), gather(v, places))
            return layout.attention(layer, q, k, v, scale)

        weights = [request.weights for request in lanes]
        positions = torch.from_numpy(within(lengths)).to(self.device)
        hidden = self.model.hidden(
            layout.ids, positions, Segments.of(weights, layout.sizes), attend
        )
        parts = Segments.of(weights, [len(request.prompts) for request in lanes])
        return self.model.logits(hidden[layout.last_prompt_tokens], parts)[index]

    def _prompt_of(self) -> NDArray[np.int64]:
        """Prompt of each row, counted over all lanes."""
        found, first = [], 0
        for lane in self.lanes:
            prompts = first + np.arange(len(lane.request.prompts))
            found += [np.repeat(prompts, choice.repeats) for choice in lane.request.choices]
            first += prompts.size
        return np.concatenate(found)

    def _choose(
        self,
        logits: Tensor,
        rows: NDArray[np.int64],
        open_rows: NDArray[np.bool_],
        draws: Tensor,
        step: int,
    ) -> Tensor:
        """Chooses one token for each row in the pass, and closes the rows that end with it."""
        index = torch.from_numpy(rows).to(self.device)
        scaled = logits / self.temperature[index] if self.scaled else logits
        probabilities = torch.softmax(scaled, -1)
        if not bool(torch.isfinite(probabilities.sum())):
            self._drop_diverged(probabilities, rows, open_rows)
        for lane in self.lanes:
            for choice, start, stop in lane.running:
                if choice.generator is not None:
                    draws[start:stop].exponential_(1, generator=choice.generator)
        whole = rows.size == self.total
        tokens = (probabilities / (draws if whole else draws[index])).argmax(-1)
        for _, start, stop in self.greedy:
            first, last = np.searchsorted(rows, (start, stop))
            tokens[first:last] = logits[first:last].argmax(-1)
        if any(lane.request.entropy for lane in self.lanes):
            going = torch.from_numpy(open_rows[rows]).to(self.device)
            entropy = torch.special.entr(probabilities).sum(-1)
            self.entropy[index] += torch.where(going, entropy, 0)
        self._note(index, tokens, rows, open_rows, step)
        return tokens

    def _note(
        self,
        index: Tensor,
        tokens: Tensor,
        rows: NDArray[np.int64],
        open_rows: NDArray[np.bool_],
        step: int,
    ) -> None:
        self.tokens[index, step] = tokens
        self.lengths[rows[open_rows[rows]]] = step + 1
        open_rows[rows[torch.isin(tokens, self.end).cpu().numpy()]] = False
        for lane in self.lanes:
            lane.running = [span for span in lane.running if open_rows[span[1] : span[2]].any()]

    def _drop_diverged(
        self, probabilities: Tensor, rows: NDArray[np.int64], open_rows: NDArray[np.bool_]
    ) -> None:
        """Ends the lanes of rows whose probabilities are not finite; others never notice."""
        finite = torch.isfinite(probabilities).all(-1).cpu().numpy()
        for number in np.unique(self.lane_of[rows[~finite & open_rows[rows]]]):
            lane = self.lanes[number]
            lane.finite, lane.running = False, []
            open_rows[lane.first : lane.first + lane.request.rows] = False

    def _kept(self, rows: NDArray[np.int64], open_rows: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Places in the pass of the rows that stay: by a rule of each lane's own rows."""
        going = open_rows[rows]
        lanes = self.lane_of[rows]
        count = np.bincount(lanes, minlength=len(self.lanes))
        ended = count - np.bincount(lanes[going], minlength=len(self.lanes))
        drops = ended > DROP_SHARE * count
        return np.flatnonzero(going | ~drops[lanes])

    def _decode(self, rows: NDArray[np.int64], tokens: Tensor, step: int) -> Tensor:
        """Passes the new token of each row; the logits of the next."""
        self.caches.step = step
        parts = self._segments(rows)
        positions = self.prompt_lengths[torch.from_numpy(rows).to(self.device)] + step
        return self.model.logits(self.model.hidden(tokens, positions, parts, self.caches), parts)

    def _segments(self, rows: NDArray[np.int64]) -> Segments:
        sizes = np.bincount(self.lane_of[rows], minlength=len(self.lanes)).tolist()
        return Segments.of([lane.request.weights for lane in self.lanes], sizes)

    def _results(self) -> list[Completions]:
        ids = self.tokens.tolist()
        found = []
        for lane in self.lanes:
            span = range(lane.first, lane.first + lane.request.rows)
            completions = [ids[row][: self.lengths[row]] for row in span]
            entropy = self.entropy[lane.first : lane.first + lane.request.rows]
            found.append(Completions(completions, entropy, lane.finite))
        return found
