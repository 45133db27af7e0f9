"""Files that several machines share.

A network disk answers from memory for some seconds: what another machine has just made may not be
there yet. It asks again when something is opened, a file for what is in it, a directory for which
names it has; and a file that another machine replaces while it is read ends in ESTALE.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Sequence
from pathlib import Path

READS = 3
"""A file that is replaced while it is read is read again; each time finds the newest."""
ABSENT = (errno.ENOENT, errno.ENOTDIR, errno.ESTALE)
Moves = list[tuple[Path, Path]]


def read_text(path: Path) -> str | None:
    """The text of a file; None if there is none, or it is being taken away."""
    for _ in range(READS):
        try:
            return path.read_text()
        except OSError as error:
            if error.errno not in ABSENT:
                raise
            if error.errno != errno.ESTALE:
                break
    return None


def is_json(text: str) -> bool:
    """Whether a text is whole; a power failure cuts files short that were not synced."""
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def mtime_ns(path: Path) -> int | None:
    """When a file was written, in ns; None if there is none."""
    try:
        return path.stat().st_mtime_ns
    except OSError as error:
        if error.errno not in ABSENT:
            raise
        return None


def look_afresh(directory: Path) -> None:
    """Make a network disk forget which names the directory had, and which it had not."""
    try:
        os.close(os.open(directory, os.O_RDONLY))
    except OSError as error:
        if error.errno not in ABSENT:
            raise


def link_first(source: Path, target: Path) -> bool:
    """Give a file a second name; False if another file has it already.

    A server that repeats a request whose answer was lost finds the name taken by the first one,
    or the answer is an error although the link was made. So what lies there decides.
    """
    try:
        os.link(source, target)
    except OSError:
        if not target.exists():
            raise
        return source.samefile(target)
    return True


def move(names: Sequence[str], source: Path, target: Path) -> Moves:
    """Move files or directories from one directory to another.

    Returns:
        The moves that were made, for :func:`undo`: also those of what lay in the target, aside
        into ``source``.
    """
    look_afresh(source)
    made: Moves = []
    for name in names:
        if not (source / name).exists():
            continue
        if (target / name).exists():
            made.append(_move(target / name, source / f"replaced-{name}"))
        made.append(_move(source / name, target / name))
    return made


def undo(moves: Moves) -> None:
    """Take moves back."""
    for source, target in reversed(moves):
        _move(target, source)


def _move(source: Path, target: Path) -> tuple[Path, Path]:
    source.rename(target)
    return source, target
