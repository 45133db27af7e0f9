"""Keeps the memory that passes free, instead of handing it back to the system and asking anew."""

from __future__ import annotations

import ctypes
import sys

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # mallopt's numbers, malloc.h of glibc


def keep_freed_memory() -> None:
    """Tells glibc to serve large blocks from its heap and not to shrink it.

    A pass allocates and frees tensors of megabytes by the hundred. By default each may be a mapping
    of its own, whose pages the kernel clears again every time: 10 to 30 % of a small model's
    training pass. Elsewhere than on Linux nothing is done.
    """
    if sys.platform == "linux":
        libc = ctypes.CDLL(None)
        if hasattr(libc, "mallopt"):  # not in musl
            libc.mallopt(_MMAP_THRESHOLD, 1 << 30)
            libc.mallopt(_TRIM_THRESHOLD, (1 << 31) - 1)
