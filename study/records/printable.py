"""Text that others wrote, for a terminal: it is shown, never obeyed."""

from __future__ import annotations

LINES = "\n\t"
"""Control characters that lay text out; everything else that is not printable steers."""


def printable(text: str, keep: str = LINES) -> str:
    """The text with what would steer a terminal (escapes, bidirectional marks) spelled out.

    Args:
        text: Names, reasons, whatever was read.
        keep: Control characters that stay; none in a cell of a table or a single line.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep else ascii(c)[1:-1] for c in text)
