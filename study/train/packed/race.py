"""Draws of the exponential race, by which ``torch.multinomial`` chooses a token.

It divides the probabilities by exponential draws, one for each row and token, and takes the largest
quotient.
"""

from __future__ import annotations

import torch
from torch import Tensor


class Race:
    """The draws of many rows, each from its lane's generator.

    All rows' draws must be made, or a generator would fall out of step; only those of rows that go
    on are looked at. On a CPU an exponential draw is -log(1 - u) with u uniform in double precision
    (``at::transformation::exponential``): there the logarithms are taken of those rows alone.
    """

    def __init__(self, rows: int, tokens: int, device: torch.device) -> None:
        """Makes room for the draws of so many rows and tokens."""
        self._on_cpu = device.type == "cpu"
        dtype = torch.float64 if self._on_cpu else torch.float32
        self._draws = torch.zeros(rows, tokens, dtype=dtype, device=device)

    def draw(self, start: int, stop: int, generator: torch.Generator) -> None:
        """Draws for a range of rows what one call of ``multinomial`` would."""
        if self._on_cpu:
            self._draws[start:stop].uniform_(generator=generator)
        else:
            self._draws[start:stop].exponential_(1, generator=generator)

    def winners(self, probabilities: Tensor, rows: Tensor) -> Tensor:
        """The tokens [n] that rows choose, given their probabilities [n, tokens]."""
        draws = self._draws.index_select(0, rows)
        if self._on_cpu:
            draws = draws.neg_().log1p_().neg_().float()
        return torch.div(probabilities, draws, out=draws).argmax(-1)
