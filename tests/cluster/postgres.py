"""A private PostgreSQL server of Debian's package, on a socket of this machine alone."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest

BINARIES = Path("/usr/lib/postgresql")
SETTINGS = ("fsync=off", "listen_addresses=", "max_connections=200")


def binaries() -> Path | None:
    """Where ``initdb`` and ``postgres`` are; Debian keeps them out of the PATH."""
    found = shutil.which("initdb")
    if found:
        return Path(found).resolve().parent
    versions = sorted(BINARIES.glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    return versions[-1].parent if versions else None


@dataclass
class Server:
    """A server that can be killed and started again on the same data."""

    data: Path
    sockets: Path
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """The URL of its only database."""
        return f"postgresql://postgres@/postgres?host={self.sockets}"

    def start(self) -> None:
        """Start it and wait until it answers."""
        tools = binaries()
        assert tools is not None
        command = [str(tools / "postgres"), "-D", str(self.data), "-k", str(self.sockets)]
        command += [word for setting in SETTINGS for word in ("-c", setting)]
        with (self.data.parent / "log.txt").open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, **unprivileged())
        deadline = time.monotonic() + 30
        while True:
            try:
                psycopg.connect(self.url, connect_timeout=2).close()
                return
            except psycopg.OperationalError:
                assert time.monotonic() < deadline, (self.data.parent / "log.txt").read_text()
                assert self.process.poll() is None, (self.data.parent / "log.txt").read_text()
                time.sleep(0.1)

    def kill(self) -> None:
        """As a crash does: no goodbye to anybody."""
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        # What the postmaster leaves behind, it removes itself when it starts again.

    def stop(self) -> None:
        """Stop it without waiting for its clients."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            self.process.wait(timeout=30)


def unprivileged() -> dict[str, object]:
    """PostgreSQL refuses to run as root."""
    return {"user": "nobody", "group": "nogroup", "extra_groups": []} if os.geteuid() == 0 else {}


@contextmanager
def private_server() -> Iterator[Server]:
    """A fresh server; a socket's path must be short, so not below pytest's directories."""
    tools = binaries()
    if tools is None:
        pytest.skip("PostgreSQL is not installed (on Debian: apt-get install postgresql)")
    home = Path(tempfile.mkdtemp(prefix="pg"))
    home.chmod(0o777)
    server = Server(data=home / "data", sockets=home)
    command = [str(tools / "initdb"), "-D", str(server.data), "-U", "postgres", "-A", "trust", "-N"]
    try:
        subprocess.run(command, check=True, capture_output=True, **unprivileged())  # type: ignore[call-overload]
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(home, ignore_errors=True)
