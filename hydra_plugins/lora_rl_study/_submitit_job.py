"""What submitit writes into a job's file and carries out.

Not in the launcher's module, which Hydra executes twice: a class and its copy are not the same.
"""

from __future__ import annotations

import signal
from typing import Any

from hydra_plugins.lora_rl_study._job import carry_out, exit_failure, failure_of


class TimeIsUp(KeyboardInterrupt):
    """The cluster wants its nodes back; the worker hands its runs back, as on Ctrl-C."""


class SubmititJob:
    """A job as submitit carries it out; what is left of it after a requeue is all of it."""

    def __init__(self, packed: bytes) -> None:
        self.packed = packed

    def __call__(self) -> str | None:
        """Carry the job out; returns how it failed, if it did."""
        import submitit

        number = getattr(signal, f"SIG{submitit.JobEnvironment.USR_SIG}")
        requeue = signal.getsignal(number)
        signal.signal(number, _raise_time_is_up)
        try:
            return failure_of(carry_out(self.packed))
        except TimeIsUp:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)  # comes with the requeue
            assert callable(requeue)
            requeue(number, None)  # by now no run is held; it leaves this process
            raise
        except SystemExit as left:
            return exit_failure(left.code)

    def checkpoint(self) -> Any:
        """What submitit puts into the queue again (called by submitit)."""
        import submitit

        return submitit.helpers.DelayedSubmission(self)


def _raise_time_is_up(signum: int, frame: object) -> None:
    raise TimeIsUp
