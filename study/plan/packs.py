"""Which engine trains an experiment, and which of its runs share a process."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import asdict, dataclass
from fractions import Fraction
from functools import cache

from study.config import GrpoObjective, RunConfig
from study.plan.arms import Arm
from study.plan.description import Description
from study.plan.experiment import Plan, PlannedRun
from study.plan.identity import short_hash

ROWS = 512
"""Completions per step that a pack should reach. Below some hundred rows a decoding step costs the
same time whatever it carries, so further runs ride along for nothing; beyond, time grows with the
rows, and a larger pack would only make its first result later."""
MOST_RUNS = 32
"""A larger pack gains little on small batches, and makes one crash dearer."""
LANE_BYTES = 4e9
"""Memory for what a pack's runs hold each for themselves: it bounds full fine-tuning of models that
are not small."""
PACKED_LOSSES = ("grpo", "bnpo", "dr_grpo", "dapo")
"""Values of ``objective.loss_type`` that the packed engine computes."""
STATE_BYTES_PER_PARAM = 16
"""Weight, gradient and the two moments of AdamW, in float32."""


def pack_key(arm: Arm) -> str:
    """Hash of what runs must share to be trained in one process: engine, base and task.

    Method, rank, learning rate, seed, batch size, steps, evaluation and phase may differ.
    """
    content = {
        "engine": arm.config.engine.name,
        "model": {"revision": arm.model.model_revision, "dtype": arm.config.model.dtype},
        "task": asdict(arm.config.task) | {"data_revision": arm.model.data_revision},
    }
    return short_hash(content)


def pack_size(arm: Arm) -> int:
    """Runs of ``arm`` that one process trains at once, by the cost model of this module."""
    if arm.config.engine.name == "trl":
        return 1
    by_rows = ROWS // arm.config.objective.rows_per_step
    by_memory = int(LANE_BYTES / (STATE_BYTES_PER_PARAM * arm.trainable_params))
    return max(1, min(MOST_RUNS, by_rows, by_memory))


def pack_share(arm: Arm, asked: int | None = None) -> Fraction:
    """The part of a pack that a run of ``arm`` takes up; ``asked``: ``engine.pack_size``."""
    size = 1 if arm.config.engine.name == "trl" else asked or pack_size(arm)
    return Fraction(1, size)


@dataclass(frozen=True, kw_only=True)
class Packer:
    """Chooses the runs that join a pack."""

    arms: Mapping[str, Arm]
    asked: int | None = None
    """``engine.pack_size``."""
    alone: Collection[str] = ()
    """Ids of runs that get a process of their own: they were in a pack that died."""
    key: str | None = None
    """:func:`pack_key` of a pack that is under way; None: the first run that waits opens one."""

    def share(self, run: PlannedRun) -> Fraction:
        """The part of a pack that ``run`` takes up."""
        return (
            Fraction(1) if run.run_id in self.alone else pack_share(self.arms[run.arm], self.asked)
        )

    def places(self, inside: Iterable[PlannedRun]) -> int:
        """Places that are free beside ``inside``, for runs of the arm that takes least."""
        room = 1 - sum((self.share(run) for run in inside), Fraction(0))
        least = min([Fraction(1), *(pack_share(arm, self.asked) for arm in self.arms.values())])
        return int(room / least)

    def joining(
        self,
        waiting: Iterable[PlannedRun],
        inside: Iterable[PlannedRun],
        most: int,
        is_open: Callable[[PlannedRun], bool] = lambda run: True,
    ) -> list[PlannedRun]:
        """At most ``most`` of ``waiting``, in their order, that fit in beside ``inside``.

        Args:
            waiting: Runs that nobody holds.
            inside: Runs of the pack.
            most: How many may join.
            is_open: Whether a run still has no result; looks at the disk, so only at what fits.
        """
        key_of = cache(lambda arm: pack_key(self.arms[arm]))
        share_of = cache(lambda arm: pack_share(self.arms[arm], self.asked))
        room = 1 - sum((self.share(run) for run in inside), Fraction(0))
        joined: list[PlannedRun] = []
        key = self.key

        def fits(run: PlannedRun) -> bool:
            if run.run_id in self.alone:
                return self.key is None and room == 1
            return key in (None, key_of(run.arm)) and share_of(run.arm) <= room

        for run in waiting:
            if len(joined) >= most or room <= 0:
                break
            # Asked again: the look may find that the run needs a process of its own.
            if fits(run) and is_open(run) and fits(run):
                key = key or key_of(run.arm)
                joined.append(run)
                room -= self.share(run)
        return joined


def packed_refusal(config: RunConfig, model: Description) -> str:
    """Why the packed engine cannot train a run, as in "the arm *sets model.dtype=bfloat16*".

    Returns:
        The reason, naming the setting; empty if the run qualifies.
    """
    objective = config.objective
    if isinstance(objective, GrpoObjective):
        if objective.beta > 0:
            return f"sets objective.beta={objective.beta:g}"
        if objective.loss_type not in PACKED_LOSSES:
            return f"sets objective.loss_type={objective.loss_type}"
    if config.model.dtype != "float32":
        return f"sets model.dtype={config.model.dtype}"
    return model.packed_refusal


@dataclass(frozen=True, kw_only=True)
class EngineChoice:
    """The engine of an experiment, and why."""

    asked: str
    """``engine.name`` as the user set it."""
    name: str
    """``packed`` or ``trl``."""
    reason: str = ""
    """What decided, as in "trl, *since arm full sets objective.beta=0.01*"; may be empty."""


def choose_engine(asked: str, arms: Mapping[str, Arm]) -> EngineChoice:
    """The engine of an experiment with these arms: packed only if every arm qualifies.

    Raises:
        ValueError: if ``engine=packed`` was asked for and an arm does not qualify.
    """
    if asked == "trl":
        return EngineChoice(asked=asked, name="trl")
    refusals = ((name, packed_refusal(arm.config, arm.model)) for name, arm in arms.items())
    name, refusal = next(((n, r) for n, r in refusals if r), ("", ""))
    if not refusal:
        return EngineChoice(asked=asked, name="packed")
    if asked == "packed":
        raise ValueError(f"engine=packed cannot train arm {name}, which {refusal}; use engine=trl")
    return EngineChoice(asked=asked, name="trl", reason=f"since arm {name} {refusal}")


def with_engine(arms: Mapping[str, Arm], engine: str) -> dict[str, Arm]:
    """The arms, to be trained by ``engine``."""
    return {name: _with_engine(arm, engine) for name, arm in arms.items()}


def _with_engine(arm: Arm, engine: str) -> Arm:
    chosen = dataclasses.replace(arm.config.engine, name=engine, pack_size=None)
    return dataclasses.replace(arm, config=dataclasses.replace(arm.config, engine=chosen))


def settle_engine(old: Plan, new: Plan, choice: EngineChoice) -> tuple[Plan, EngineChoice]:
    """``new`` and its engine, where the plan on disk has one already: an experiment keeps its own.

    Single runs share a directory but no question, so each has the engine of its own.

    Raises:
        ValueError: if another engine was asked for, or ``new`` has an arm that the experiment's
            engine cannot train.
    """
    if old.engine == choice.name or old.experiment.kind == "single":
        return new, choice
    name = old.experiment.name
    if choice.asked != "auto":
        raise ValueError(
            f"an experiment has one engine: {name} is trained by engine={old.engine}, got "
            f"engine={choice.asked}; give the other engine's experiment a new name=..."
        )
    if old.engine == "packed":
        raise ValueError(
            f"an experiment has one engine: {name} is trained by engine=packed, which cannot "
            f"go on {choice.reason}; give the changed experiment a new name=..."
        )
    kept = EngineChoice(asked="auto", name=old.engine, reason="as the experiment began with it")
    arms, reserve = (with_engine(arms, old.engine) for arms in (new.arms, new.reserve))
    return dataclasses.replace(new, engine=old.engine, arms=arms, reserve=reserve), kept
