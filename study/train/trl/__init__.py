"""The engine `trl`: one run per process through TRL's GRPOTrainer or SFTTrainer."""

from collections.abc import Sequence

from study.train.engine import NextRun, RunSpec, Sink
from study.train.quiet import quiet_libraries
from study.train.trl.grpo import GrpoSession
from study.train.trl.session import Session
from study.train.trl.sft import SftSession

SESSIONS: dict[str, type[Session]] = {"grpo": GrpoSession, "sft": SftSession}
"""By ``objective.name``."""


def train(runs: Sequence[RunSpec], sink: Sink, next_run: NextRun) -> None:
    """Trains one run to its outcome; see :mod:`study.train.engine`. `next_run` is never asked.

    Raises:
        ValueError: If the model or task is not usable, the model has changed since it was
            described, or not exactly one run is given.
        RuntimeError: If the method did not train what it should, or the scorer keeps failing.
    """
    if len(runs) != 1:
        raise ValueError(f"the trl engine trains exactly one run at a time, got {len(runs)}.")
    with quiet_libraries():
        session = SESSIONS[runs[0].config.objective.name](runs[0], sink)
        sink.ended(session.run())
