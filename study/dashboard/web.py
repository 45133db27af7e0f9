"""What stands between a browser and the dashboard."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from study.dashboard.view import READ_ONLY

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

READING = ("GET", "HEAD")
LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")


def guarded(application: WSGIApplication, *, loopback: bool) -> WSGIApplication:
    """Let only reading requests through.

    Args:
        application: The dashboard.
        loopback: Let only requests through that call this machine by its own names. A page of the
            outside that a browser here shows could otherwise read the dashboard under a name of
            its own that it points to this machine.
    """

    def guard(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        host = environ.get("HTTP_HOST", "")
        name = host[: host.index("]") + 1] if host.startswith("[") else host.partition(":")[0]
        if loopback and name not in LOOPBACK_NAMES:
            return _refusal(start_response, f"this dashboard is not called {name!r}")
        if environ["REQUEST_METHOD"] not in READING:
            return _refusal(start_response, READ_ONLY)
        return application(environ, start_response)

    return guard


def _refusal(start_response: StartResponse, reason: str) -> Iterable[bytes]:
    text = f'{{"reason": "{reason}"}}'.encode()
    headers = [("Content-Type", "application/json"), ("Content-Length", str(len(text)))]
    start_response("403 Forbidden", headers)
    return [text]
