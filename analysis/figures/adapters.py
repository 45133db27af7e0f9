"""The matrix of adapters by tasks: what each is good for, and what sums of them are."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from analysis.figures.marks import SUBTITLE_WIDTH, plain, shortened, title
from analysis.figures.style import figure
from analysis.reading.adapters_file import AdapterMatrix

SCALE = "Greys"
DARK = 0.5
"""Accuracies from here on are written in white."""


def write_adapter_figure(data: AdapterMatrix, directory: Path, stem: str) -> Path:
    """Draw a matrix as ``STEM.png`` and ``STEM.pdf``.

    Args:
        data: The matrix.
        directory: Where the files go.
        stem: Their name.

    Returns:
        The PNG file.
    """
    figure(partial(draw_matrix, data), directory, stem, 1.9 + 0.62 * len(data.adapters))
    return directory / f"{stem}.png"


def draw_matrix(data: AdapterMatrix, ax: Axes) -> None:
    """A row an adapter, a column a task; in each cell accuracy and interval, greedy below."""
    values = np.array([[data.cells[a, t].accuracy for t in data.tasks] for a in data.adapters])
    ax.imshow(values, cmap=SCALE, vmin=0, vmax=1, aspect="auto")
    for y, adapter in enumerate(data.adapters):
        for x, task in enumerate(data.tasks):
            cell = data.cells[adapter, task]
            text = (
                f"{cell.accuracy:.2f} [{cell.low:.2f}, {cell.high:.2f}]\ngreedy {cell.greedy:.2f}"
            )
            colour = "white" if cell.accuracy >= DARK else "black"
            ax.text(x, y, text, ha="center", va="center", color=colour, fontsize=8.5)
    ax.set_xticks(range(len(data.tasks)), [plain(shortened(task)) for task in data.tasks])
    ax.set_yticks(range(len(data.adapters)), [plain(shortened(name)) for name in data.adapters])
    ax.tick_params(length=0)
    ax.grid(visible=False)
    ax.set_xlabel("task")
    ax.set_ylabel("adapter")
    title(
        ax,
        "Adapters on one frozen base, and sums of them",
        f"{data.model}; accuracy sampled as in training; {data.level:.0%} intervals over "
        f"{data.prompts} prompts of this one adapter, not over seeds",
        SUBTITLE_WIDTH - max(map(len, data.adapters)),
    )
