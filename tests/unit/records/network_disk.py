"""A machine that sees its disk as through a network: what it remembers, it does not ask again.

As NFS does, it believes what it knows of a name until the name's directory is opened, what it
knows of a file until the file is opened, and it knows what it does itself.
"""

from __future__ import annotations

import errno
import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

TMPFILE = getattr(os, "O_TMPFILE", -1)  # Linux


class Machine:
    """One of the machines; what happens outside :meth:`at_work` is another's doing."""

    def __init__(self) -> None:
        self._known: dict[str, os.stat_result | None] = {}
        """By path; None: it is not there."""

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """This process acts as the machine."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(os, "stat", self._remembering(os.stat))
            patch.setattr(io, "open", self._opening(io.open))
            patch.setattr(os, "open", self._opening(os.open))
            patch.setattr(os, "scandir", self._opening(os.scandir))
            for name in ("mkdir", "rename", "replace", "link", "unlink", "rmdir"):
                patch.setattr(os, name, self._changing(getattr(os, name)))
            yield

    def _remembering(self, stat: Callable[..., os.stat_result]) -> Callable[..., os.stat_result]:
        def remembering(path: Any, *rest: Any, **how: Any) -> os.stat_result:
            if isinstance(path, int):
                return stat(path, *rest, **how)
            name = os.fspath(path)
            if name not in self._known:
                try:
                    self._known[name] = stat(path, *rest, **how)
                except FileNotFoundError:
                    self._known[name] = None
            found = self._known[name]
            if found is None:
                raise _not_there(name)
            return found

        return remembering

    def _opening(self, act: Callable[..., Any]) -> Callable[..., Any]:
        def opening(path: Any, *rest: Any, **how: Any) -> Any:
            if isinstance(path, int):
                return act(path, *rest, **how)
            name, way = os.fspath(path), rest[0] if rest else how.get("mode", "r")
            if isinstance(way, int) and way & TMPFILE == TMPFILE:
                raise OSError(errno.EOPNOTSUPP, "no files without a name over a network", name)
            creates = way[0] in "wxa" if isinstance(way, str) else way & os.O_CREAT
            if not creates and self._known.get(name, True) is None:
                raise _not_there(name)
            for known in [k for k in self._known if name in (k, os.path.dirname(k))]:
                del self._known[known]
            try:
                return act(path, *rest, **how)
            except FileNotFoundError:
                self._known[name] = None
                raise

        return opening

    def _changing(self, act: Callable[..., Any]) -> Callable[..., Any]:
        def changing(*paths: Any, **how: Any) -> Any:
            for path in paths:
                if not isinstance(path, int):
                    self._known.pop(os.fspath(path), None)
            return act(*paths, **how)

        return changing


def _not_there(name: str) -> FileNotFoundError:
    return FileNotFoundError(errno.ENOENT, "not there as far as this machine knows", name)
