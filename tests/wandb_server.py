"""The part of a W&B server that its client needs to upload a run, on the loopback interface.

What it guarantees: a file's lines are kept by the line number at which the client sends them, as
W&B's file stream does, so a line that is sent twice is there once; ``fault`` is asked before each
answer. The client is the real one.
"""

from __future__ import annotations

import json
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

KEY = "0123456789abcdef0123456789abcdef01234567"
"""A key in the form that W&B's client accepts."""
Fault = Callable[[str, str], str | None]
"""From path and body: ``hang``, ``drop`` (the connection), ``500``, or None to answer."""


@dataclass
class WandbServer:
    """What runs have uploaded."""

    url: str = ""
    fault: Fault = lambda path, body: None
    lines: dict[str, dict[int, dict[str, Any]]] = field(default_factory=lambda: defaultdict(dict))
    """History rows by run id and line number."""
    runs: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The latest facts of each run: ``displayName``, ``groupName``, ``tags``, ``config`` ..."""
    stopped: threading.Event = field(default_factory=threading.Event)

    def rows(self, run_id: str) -> list[dict[str, Any]]:
        """What was logged, in order, without W&B's own columns."""
        kept = self.lines[run_id]
        assert sorted(kept) == list(range(len(kept)))
        rows = [kept[number] for number in sorted(kept)]
        return [{k: v for k, v in row.items() if not k.startswith("_")} for row in rows]

    def take(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Store what a request brings; the answer."""
        query = body.get("query", "")
        variables = body.get("variables") or {}
        if "upsertBucket" in query:
            known = self.runs.setdefault(variables["name"], {})
            known |= {key: value for key, value in variables.items() if value is not None}
            return _bucket(variables)
        if "createRunFiles" in query:
            files = [{"name": n, "uploadUrl": f"{self.url}/up/{n}"} for n in variables["files"]]
            made = {"runID": "internal", "uploadHeaders": [], "files": files}
            return {"data": {"createRunFiles": made}}
        if path.endswith("/file_stream"):
            history = body.get("files", {}).get("wandb-history.jsonl", {})
            for i, line in enumerate(history.get("content", [])):
                self.lines[path.split("/")[-2]][history["offset"] + i] = json.loads(line)
        return {"data": {"serverInfo": {"features": [], "cliVersionInfo": {}}}}


def _bucket(variables: dict[str, Any]) -> dict[str, Any]:
    project = {"id": "p", "name": variables["project"], "entity": {"id": "e", "name": "team"}}
    bucket = {
        "id": "internal",
        "name": variables["name"],
        "displayName": variables["displayName"],
        "sweepName": None,
        "historyLineCount": 0,
        "config": "{}",
        "project": project,
    }
    return {"data": {"upsertBucket": {"bucket": bucket, "inserted": True}}}


@contextmanager
def wandb_server(fault: Fault = lambda path, body: None) -> Iterator[WandbServer]:
    """A running server."""
    server = WandbServer(fault=fault)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *arguments: object) -> None:
            pass

        def do_GET(self) -> None:
            self._answer()

        def do_PUT(self) -> None:
            self._answer()

        def do_POST(self) -> None:
            self._answer()

        def _answer(self) -> None:
            text = self.rfile.read(int(self.headers.get("content-length") or 0)).decode("latin1")
            fault = server.fault(self.path, text)
            if fault == "hang":
                server.stopped.wait()
            if fault in ("hang", "drop"):
                self.close_connection = True
                return
            reply = server.take(self.path, json.loads(text)) if text[:1] == "{" else {}
            data = json.dumps(reply).encode()
            self.send_response(500 if fault == "500" else 200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    class Quiet(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *arguments: object) -> None:
            pass  # clients are killed on purpose

    http = Quiet(("127.0.0.1", 0), Handler)
    server.url = f"http://127.0.0.1:{http.server_address[1]}"
    thread = threading.Thread(target=http.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.stopped.set()
        http.shutdown()
        http.server_close()


def wait_until(true: Callable[[], object], seconds: float = 40) -> None:
    """Wait for something to come true; fail if it does not."""
    until = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < until
        time.sleep(0.05)
