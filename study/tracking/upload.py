"""Uploads W&B's files with ``wandb sync``, in processes that may hang and are ended then.

``python -m study.tracking.upload ARGUMENTS`` is ``wandb ARGUMENTS`` that ends with its parent.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

BATCH = 8
"""Files that a process uploads side by side, so that one which hangs leaves the others alone."""
LIMIT_S, SECONDS_PER_MB = 60.0, 10.0
"""Time an upload is given, and more for large files."""
DEFAULT_URL = "https://api.wandb.ai"
PROBE_S = 10.0
"""Time in which a server answers anything at all; ``wandb sync`` itself would try for minutes."""
LIVE_UPLOADS = 4
"""Processes that upload files still being written; further runs are uploaded when they end."""


def check_key(base_url: str, variables: Mapping[str, str]) -> None:
    """See that a key is at hand: W&B itself would ask for one, and nobody may be there to answer.

    Raises:
        ValueError: if there is none.
    """
    import requests  # W&B's own way of reading a .netrc

    if variables.get("WANDB_API_KEY") or variables.get("WANDB_IDENTITY_TOKEN_FILE"):
        return
    if requests.utils.get_netrc_auth(base_url) is None:
        raise ValueError(
            f"no W&B key for {base_url}: set WANDB_API_KEY, or log in by `wandb login`"
        )


def reachable(base_url: str) -> bool:
    """Whether anything answers there."""
    import requests

    try:
        requests.head(base_url, timeout=PROBE_S)
    except requests.RequestException:
        return False
    return True


class Uploader:
    """Starts uploads of one mirror."""

    def __init__(self, log: Path, environment: dict[str, str]) -> None:
        """Builds it.

        Args:
            log: File to which ``wandb sync`` writes.
            environment: W&B's variables; this process itself keeps no key.
        """
        self._log = log
        self._base_url = environment.get("WANDB_BASE_URL", DEFAULT_URL)
        self._environment = {**os.environ, **environment}
        self._live: dict[subprocess.Popen[bytes], set[Path]] = {}

    def upload(self, directories: Sequence[Path]) -> bool:
        """Upload complete files; which arrived is told by W&B's marks beside them.

        Returns:
            False if a process came to nothing: the network or the server is away, and the rest
            was left for later.
        """
        self._end_live(directories)
        if directories and not reachable(self._base_url):
            return False
        for at in range(0, len(directories), BATCH):
            batch = directories[at : at + BATCH]
            process = self._start("sync", "-n", str(BATCH), *map(str, batch))
            try:
                process.wait(_limit(batch))
            except subprocess.TimeoutExpired:
                pass
            finally:
                end(process)
            if not any(any(d.glob("*.wandb.synced")) for d in batch):
                return False
        return True

    def follow(self, directories: Sequence[Path]) -> None:
        """Upload files that are still being written; they are uploaded again when complete."""
        for process in [p for p in self._live if p.poll() is not None]:
            end(process)
            del self._live[process]
        covered = set().union(*self._live.values())
        fresh = [d for d in directories if d not in covered and any(d.glob("*.wandb"))]
        if fresh and len(self._live) < LIVE_UPLOADS:
            paths = map(str, fresh)
            process = self._start("beta", "sync", "--live", "-n", str(len(fresh)), *paths)
            self._live[process] = set(fresh)

    def close(self) -> None:
        """End what still runs."""
        for process in self._live:
            end(process)

    def _end_live(self, directories: Sequence[Path]) -> None:
        """One process a file: those that followed the ``directories`` end first."""
        wanted = set(directories)
        for process in [p for p, covered in self._live.items() if covered & wanted]:
            end(process)
            del self._live[process]

    def _start(self, *arguments: str) -> subprocess.Popen[bytes]:
        self._log.parent.mkdir(parents=True, exist_ok=True)
        with self._log.open("ab") as output:
            return subprocess.Popen(
                [sys.executable, "-m", "study.tracking.upload", *arguments],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                env=self._environment,
            )


def end(process: subprocess.Popen[bytes]) -> None:
    """End a process and its pipe."""
    process.kill()
    process.wait()
    assert process.stdin is not None
    process.stdin.close()


def _limit(directories: Sequence[Path]) -> float:
    size = sum(file.stat().st_size for d in directories for file in d.glob("*.wandb"))
    return LIMIT_S + SECONDS_PER_MB * size / 1e6


def _end_with_parent() -> None:
    """Standard input ends when the parent does, however it ended."""
    sys.stdin.buffer.read()
    os._exit(1)


def main() -> None:
    """Run W&B's command line."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    from wandb.cli.cli import cli

    cli(sys.argv[1:])


if __name__ == "__main__":
    main()
