"""The engine `packed`: many runs that share one base, trained together in one process.

A step of the pack is one optimizer step of every lane. Lanes are taken in chunks whose rows fill a
pass (:mod:`study.train.packed.costs`); a chunk samples, scores, trains and updates before the next
one begins, so that only its lanes hold more than their own states. A slot whose run has ended goes
to the next run at once; where there is none, the pack goes on smaller.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch

from study.train.engine import Evaluation, NextRun, RunSpec, Sink
from study.train.health import Diverged, RunEnded
from study.train.models import check_revision, hash_parameters, load_model
from study.train.packed.costs import evaluation_chunks, step_chunks
from study.train.packed.evaluation import base_key, evaluate
from study.train.packed.hf_model import HfModels
from study.train.packed.lane import Lane
from study.train.packed.memory import keep_freed_memory
from study.train.packed.model import PackedModel
from study.train.packed.passes import training_pass
from study.train.packed.rollout import complete
from study.train.packed.shared import Shared
from study.train.quiet import quiet_libraries


def train(runs: Sequence[RunSpec], sink: Sink, next_run: NextRun) -> None:
    """Trains runs that share a base and a task; see :mod:`study.train.engine`.

    Raises:
        ValueError: If the model or task is not usable, or the model has changed since it was
            described.
    """
    gc.freeze()  # the libraries' objects stay for good: no collection need visit them
    keep_freed_memory()
    if not torch.cuda.is_available():
        torch.set_num_threads(1)  # a process per core: small products gain nothing from threads
    with quiet_libraries():
        _Pack(runs, sink, next_run).run()


class _Pack:
    """The lanes of one process."""

    def __init__(self, runs: Sequence[RunSpec], sink: Sink, next_run: NextRun) -> None:
        first = runs[0]
        check_revision(first.config.model, first.model.model_revision)
        template = load_model(first.config.model)
        if torch.cuda.is_available():
            template = template.to("cuda")
        self.shared = Shared(first, template)
        self.model = PackedModel(template, self.shared.no_decay)
        self.hf_models = HfModels(self.model)
        self.sink, self.next_run = sink, next_run
        self.lanes: list[Lane] = []
        self.base_hash = hash_parameters(self.model.base.items())
        self.base_evaluations: dict[object, Evaluation | Diverged] = {}
        for spec in runs:
            self._open(spec)

    def run(self) -> None:
        """Trains until every lane has ended and no run is left."""
        self._refill()
        while self.lanes:
            due = [lane for lane in self.lanes if lane.evaluation_due]
            if due:
                self._evaluate(due)
                self._refill()  # whose runs are evaluated before any lane goes on
            else:
                for chunk in step_chunks(self.lanes):
                    self._step(chunk)

    def _open(self, spec: RunSpec) -> None:
        """Gives a slot to a run."""
        with self._guarded(spec.run_id):
            self.lanes.append(Lane(spec, self.sink, self.model, self.hf_models, self.shared))

    def _refill(self) -> None:
        """Takes in what the worker has for the free slots."""
        while (spec := self.next_run()) is not None:
            self._open(spec)

    @contextmanager
    def _guarded(self, run_id: str) -> Iterator[None]:
        """A lane's own doings: what ends or breaks there concerns this run alone."""
        try:
            yield
        except RunEnded as end:
            self._close(self._lane(run_id), end.status, end.reason)
        except Exception as error:  # the run boundary: it becomes a recorded status
            self.lanes = [lane for lane in self.lanes if lane.spec.run_id != run_id]
            self.sink.failed(run_id, error)

    def _lane(self, run_id: str) -> Lane:
        return next(lane for lane in self.lanes if lane.spec.run_id == run_id)

    def _close(self, lane: Lane, status: str, reason: str) -> None:
        """Ends a run with a result."""
        self.lanes.remove(lane)
        with self._guarded(lane.spec.run_id):
            self.sink.ended(lane.outcome(status, reason, self.base_hash))

    def _step(self, lanes: list[Lane]) -> None:
        """One optimizer step of each lane of a chunk."""
        began = time.perf_counter()
        self._begin(lanes)
        lanes = [lane for lane in lanes if lane in self.lanes]
        for number in range(max((len(lane.batch.micros) for lane in lanes), default=0)):
            work = [lane for lane in lanes if number < len(lane.batch.micros)]
            training_pass(self.model, [(lane, lane.batch.micros[number]) for lane in work])
        self._share(lanes, began)
        for lane in lanes:
            with self._guarded(lane.spec.run_id):
                lane.end_step()

    def _begin(self, lanes: list[Lane]) -> None:
        """Begins a step of lanes: those that need completions get new ones, scored."""
        requests = {lane.spec.run_id: lane.request() for lane in lanes}
        wanted = {run_id: request for run_id, request in requests.items() if request is not None}
        if not wanted:
            return
        longest = lanes[0].config.task.max_completion_length
        found = complete(self.model, list(wanted.values()), self.shared.end, longest)
        for run_id, completions in zip(wanted, found, strict=True):
            with self._guarded(run_id):
                if not completions.finite:
                    raise Diverged("sampling probabilities are not finite")
                self._lane(run_id).take(completions)

    def _evaluate(self, lanes: list[Lane]) -> None:
        """Evaluates lanes, asks for each whether it goes on, and ends those at their last step."""
        untrained = [lane for lane in lanes if lane.step == 0]
        self._recall(untrained)
        distinct = {base_key(lane): lane for lane in untrained if lane.evaluation_due}
        trained = [lane for lane in lanes if lane.step > 0]
        for chunk in evaluation_chunks([*distinct.values(), *trained]):
            began = time.perf_counter()
            found = evaluate(self.model, chunk)
            self._share(chunk, began)
            for lane, evaluation in zip(chunk, found, strict=True):
                if lane.step == 0:
                    self.base_evaluations[base_key(lane)] = evaluation
                else:
                    self._take_in(lane, evaluation)
        self._recall(untrained)
        for lane in [lane for lane in lanes if lane in self.lanes]:
            with self._guarded(lane.spec.run_id):
                lane.go_on()

    def _recall(self, lanes: list[Lane]) -> None:
        """Untrained lanes of equal draws have equal evaluations: one is enough."""
        for lane in lanes:
            if lane.evaluation_due and (known := self.base_evaluations.get(base_key(lane))):
                self._take_in(lane, known)

    def _take_in(self, lane: Lane, evaluation: Evaluation | Diverged) -> None:
        with self._guarded(lane.spec.run_id):
            lane.evaluated(evaluation)

    def _share(self, lanes: Sequence[Lane], began: float) -> None:
        """Charges each lane its part of the time since `began`, by its rows."""
        spent, rows = time.perf_counter() - began, sum(lane.rows for lane in lanes)
        for lane in lanes:
            lane.charge(spent * lane.rows / rows)
