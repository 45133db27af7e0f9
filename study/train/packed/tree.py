"""The distinct tokens of rows that begin alike."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


class Tree:
    """Tokens of a lane's rows, each with all that comes before it, once.

    What a model makes of a token depends on the token, its position and what comes before: rows
    that agree in these share the work. Tokens are numbered in the order of their first row, those
    of prompts first.

    Attributes:
        ids: The tokens.
        positions: Their positions.
        prompts: Tokens of each prompt, by number.
        completions: Tokens of each completion but its last, which no model need see.
    """

    def __init__(
        self,
        prompts: Sequence[Sequence[int]],
        groups: Sequence[int],
        completions: Sequence[Sequence[int]],
        padded: int | None,
    ) -> None:
        """Grows the tree.

        Args:
            prompts: Token ids of each prompt, at least one each.
            groups: Prompt of each row.
            completions: Token ids of each row.
            padded: Length that prompts are padded to, where positions count from the padding on;
                None where they count from the first token.
        """
        self._known: dict[tuple[int, int], int] = {}
        self._ids: list[int] = []
        self._positions: list[int] = []
        self.prompts: list[list[int]] = []
        for prompt in prompts:
            start = 0 if padded is None else padded - len(prompt)
            self.prompts.append(self._path(-1 - start, prompt, start))
        self.completions: list[list[int]] = []
        for group, completion in zip(groups, completions, strict=True):
            last = self.prompts[group][-1]
            self.completions.append(self._path(last, completion[:-1], self._positions[last] + 1))
        self.ids = np.array(self._ids, np.int64)
        self.positions = np.array(self._positions, np.int64)

    def _path(self, node: int, tokens: Sequence[int], position: int) -> list[int]:
        """Numbers of tokens that follow a node, which is below zero for a beginning."""
        known, path = self._known, []
        for step, token in enumerate(tokens):
            child = known.setdefault((node, token), len(self._ids))
            if child == len(self._ids):
                self._ids.append(token)
                self._positions.append(position + step)
            path.append(child)
            node = child
        return path


@lru_cache(maxsize=64)
def prompt_tree(prompts: tuple[tuple[int, ...], ...]) -> Tree:
    """The tree of prompts alone, positions from the first token on.

    Lanes of one seed sample from the same prompts, and all lanes are evaluated on the same.
    """
    return Tree(prompts, [], [], None)
