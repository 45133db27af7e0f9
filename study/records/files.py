"""Files that several machines share: written whole, looked at afresh.

A network disk answers from memory for some seconds: what another machine has just made may not be
there yet. It asks again when something is opened, a file for what is in it, a directory for which
names it has; and a file that another machine replaces while it is read ends in ESTALE.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

READS = 3
"""A file that is replaced while it is read is read again; each time finds the newest."""
ABSENT = (errno.ENOENT, errno.ENOTDIR, errno.ESTALE)
Moves = list[tuple[Path, Path, int]]
"""From where, to where, and the inode that was moved."""


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
    """Take moves back, but for what others have moved in the meantime."""
    for source, target, inode in reversed(moves):
        if target.exists() and target.stat().st_ino == inode:
            _move(target, source)


def _move(source: Path, target: Path) -> tuple[Path, Path, int]:
    inode = source.stat().st_ino
    source.rename(target)
    return source, target, inode


def is_disk_full(error: BaseException) -> bool:
    """Whether an error says that a disk or a quota is full; libraries wrap the system's words."""
    if isinstance(error, OSError):
        return error.errno in (errno.ENOSPC, errno.EDQUOT)
    return any(os.strerror(code) in str(error) for code in (errno.ENOSPC, errno.EDQUOT))


def write_json(path: Path, data: object, *, sync: bool = False) -> None:
    """Write a JSON file in one step: whole or not at all; ``sync``: even if the power fails."""
    write_text(path, json.dumps(data, indent=1, allow_nan=False) + "\n", sync=sync)


def write_text(path: Path, text: str, *, sync: bool = False) -> None:
    """Write a file in one step: whole or not at all; ``sync``: even if the power fails."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with draft.open("w") as file:
            file.write(text)
            file.flush()
            if sync:
                os.fsync(file.fileno())
    except OSError:  # a full disk: the half that was written would only fill it more
        draft.unlink(missing_ok=True)
        raise
    os.replace(draft, path)


def append_line(path: Path, data: object) -> None:
    """Append one line of JSON."""
    with path.open("a") as file:
        file.write(json.dumps(data, allow_nan=False) + "\n")


def remove(path: Path) -> None:
    """Remove a file or a directory, if it is there."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
