"""Texts for a terminal."""

from __future__ import annotations

from rich.text import Text

from study.records.printable import printable


def plain(text: str) -> Text:
    """A table cell or a line that is no markup of rich's: names and reasons, on one line."""
    return Text(printable(text, keep=""))


def duration(seconds: float) -> str:
    """Seconds as ``1 h 03 min``, ``4 min 10 s`` or ``12 s``."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02d} min"
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"
