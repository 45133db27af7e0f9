"""Held-out evaluation of several lanes at once: sampled and greedy, from one prefill."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from study.train.engine import Evaluation
from study.train.evaluate import drawn, evaluation_seed, judged
from study.train.health import Diverged
from study.train.packed.lane import Lane
from study.train.packed.model import PackedModel
from study.train.packed.rollout import Choice, Completions, Request, complete


def evaluate(model: PackedModel, lanes: Sequence[Lane]) -> list[Evaluation | Diverged]:
    """Evaluates lanes, each as it is after its steps so far.

    The draws of an evaluation come from a generator of its own, seeded by the run's seed and the
    number of the evaluation, batch by batch, so that they equal those of the engine ``trl``.

    Returns:
        For each lane its evaluation, or that its probabilities were not finite.
    """
    batches = max(len(_starts(lane)) for lane in lanes)
    generators = [_generator(model, lane) for lane in lanes]
    found: list[list[Completions]] = [[] for _ in lanes]
    for number in range(batches):
        due = [i for i, lane in enumerate(lanes) if number < len(_starts(lane))]
        requests = [_request(lanes[i], number, generators[i]) for i in due]
        end, length = lanes[0].shared.end, lanes[0].config.task.max_completion_length
        for i, completions in zip(due, complete(model, requests, end, length), strict=True):
            found[i].append(completions)
    return [_judged(lane, parts) for lane, parts in zip(lanes, found, strict=True)]


def base_key(lane: Lane) -> object:
    """What decides the evaluation of an untrained lane: lanes that agree in it agree in that."""
    evaluation, spec = lane.config.evaluation, lane.spec
    sizes = (evaluation.eval_prompts, evaluation.eval_batch_size)
    return (spec.eval_role, sizes, lane.config.seed, lane.objective.temperature)


def evaluation_rows(lane: Lane) -> int:
    """Completions of one batch of a lane's evaluation: a sampled and a greedy one a prompt."""
    evaluation = lane.config.evaluation
    return 2 * min(evaluation.eval_prompts, evaluation.eval_batch_size)


def _starts(lane: Lane) -> range:
    evaluation = lane.config.evaluation
    return range(0, evaluation.eval_prompts, evaluation.eval_batch_size)


def _generator(model: PackedModel, lane: Lane) -> torch.Generator:
    seed = evaluation_seed(lane.config.seed, len(lane.ledger.evaluations))
    return torch.Generator(model.template.device).manual_seed(seed)


def _request(lane: Lane, number: int, generator: torch.Generator) -> Request:
    start = _starts(lane)[number]
    stop = start + lane.config.evaluation.eval_batch_size
    return Request(
        weights=lane.weights,
        prompts=lane.data.held_out_ids[start:stop],
        choices=[Choice(1, generator), Choice(1, None)],
        temperature=lane.objective.temperature,
        entropy=False,
    )


def _judged(lane: Lane, parts: Sequence[Completions]) -> Evaluation | Diverged:
    if not all(part.finite for part in parts):
        return Diverged("sampling probabilities are not finite")
    sampled, greedy = [], []
    for part in parts:
        half = len(part.ids) // 2
        sampled += part.ids[:half]
        greedy += part.ids[half:]
    found = (sampled, greedy)
    work = drawn([len(ids) for ids in lane.data.held_out_ids], *found)
    return judged(lane.step, lane.data.held_out, lane.scorer, lane.shared.decode, found, work)
