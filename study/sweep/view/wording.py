"""Texts for a terminal."""

from __future__ import annotations

from rich.text import Text


def printable(text: str) -> str:
    """The text with control characters spelled out: names and reasons are shown, never obeyed."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def plain(text: str) -> Text:
    """A table cell or a line that is no markup of rich's."""
    return Text(printable(text))


def duration(seconds: float) -> str:
    """Seconds as ``1 h 03 min``, ``4 min 10 s`` or ``12 s``."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02d} min"
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"
