"""How commands speak to their user."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from study.compose import user_errors
from study.records.files import is_disk_full

SHOW_TRACE = os.environ.get("HYDRA_FULL_ERROR") == "1"
"""Hydra's own switch for traces, read before this program sets it for itself."""


@contextmanager
def reporting_user_errors() -> Iterator[None]:
    """Print a user's error as one sentence and leave with code 2; a trace on request."""
    try:
        with user_errors():
            yield
    except ValueError as error:
        if SHOW_TRACE:
            raise
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    except OSError as error:
        if SHOW_TRACE or not is_disk_full(error):
            raise
        place = f" ({error.filename})" if error.filename else ""
        print(
            f"error: the disk is full{place}; free some space, then the same command resumes",
            file=sys.stderr,
        )
        raise SystemExit(2) from None
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        raise SystemExit(130) from None
