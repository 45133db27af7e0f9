"""A process of its own for a job: ``python -m hydra_plugins.lora_rl_study._process``.

Its environment is complete before Python starts, so that no library has counted cores or GPUs by
then. It reads the job from its standard input and ends when that closes, that is with its parent.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from typing import NoReturn

LEAVE_S = 20.0
"""Time for an interrupted worker to hand its runs back."""
SIZE_BYTES = 8
INTERRUPTED = 130


def start(packed: bytes, environ: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Start a process that carries out a job, beyond the reach of the terminal's Ctrl-C.

    Args:
        packed: The job.
        environ: The environment of the process.
    """
    process = subprocess.Popen(
        [sys.executable, "-m", "hydra_plugins.lora_rl_study._process"],
        stdin=subprocess.PIPE,
        env=dict(environ),
        start_new_session=True,  # one interrupt, from us, and none while it hands its runs back
    )
    assert process.stdin is not None
    try:
        process.stdin.write(len(packed).to_bytes(SIZE_BYTES, "big") + packed)
        process.stdin.flush()
    except BrokenPipeError:  # it is dead already, which its exit code will say
        pass
    return process


def end(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    """Interrupt processes, give them a moment to leave, and kill those that have not."""
    for process in processes:
        process.send_signal(signal.SIGINT)
    deadline = time.monotonic() + LEAVE_S
    for process in processes:
        try:
            process.wait(timeout=max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def main() -> NoReturn:
    """Carry out the job that comes by standard input."""
    signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED))  # it holds nothing yet
    line = _private_stdin()
    with open(line, "rb", closefd=False) as stream:
        packed = stream.read(int.from_bytes(stream.read(SIZE_BYTES), "big"))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Thread(target=_leave_with_parent, args=(line,), daemon=True).start()
    try:
        from hydra_plugins.lora_rl_study._job import carry_out

        _ = carry_out(packed).return_value  # a failure is printed and raised here
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)  # the parent says what there is to say
    sys.exit(0)


def _private_stdin() -> int:
    """Standard input for us alone; processes that we start read nothing."""
    line = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return line


def _leave_with_parent(line: int) -> NoReturn:
    """Hand runs back and leave when the parent, of which nothing more comes, has gone."""
    while os.read(line, 1024):
        pass
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(LEAVE_S)
    os._exit(1)


if __name__ == "__main__":
    main()
