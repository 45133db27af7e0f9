"""The pre-training corpus of the lab models: exercises of the train role, as token batches."""

from collections.abc import Iterator
from random import Random

import torch
from torch import Tensor

from study.lab.recipe import Recipe, Stage
from study.lab.tokenizer import EOS_ID, PAD_ID, encode
from study.tasks.arithmetic import find_family
from study.tasks.base import prompt_role
from study.tasks.families import Exercise, Family

IGNORED = -100  # label of positions that do not enter the loss (the convention of transformers)


def draw_training_exercise(family: Family, rng: Random) -> Exercise:
    """Draws an exercise whose prompt has the role train: no other role is ever trained on."""
    while True:
        exercise = family.draw(rng)
        if prompt_role(exercise.prompt) == "train":
            return exercise


def batches(recipe: Recipe, stage: Stage, rng: Random) -> Iterator[tuple[Tensor, Tensor]]:
    """Yields the batches of one stage.

    Yields:
        Token ids and labels, both int64 of shape [batch_size, longest sequence], padded on
        the right; only solution and end-of-sequence tokens have labels.
    """
    families = [find_family(name) for name in recipe.family_shares]
    weights = list(recipe.family_shares.values())
    for _ in range(stage.steps):
        rows = []
        for family in rng.choices(families, weights, k=recipe.batch_size):
            exercise = draw_training_exercise(family, rng)
            wrong = rng.random() < stage.corrupted
            text = exercise.corrupted if wrong else exercise.solution
            rows.append((encode(exercise.prompt), [*encode(text), EOS_ID]))
        yield _pad(rows)


def _pad(rows: list[tuple[list[int], list[int]]]) -> tuple[Tensor, Tensor]:
    width = max(len(prompt) + len(completion) for prompt, completion in rows)
    ids, labels = [], []
    for prompt, completion in rows:
        gap = width - len(prompt) - len(completion)
        ids.append(prompt + completion + [PAD_ID] * gap)
        labels.append([IGNORED] * len(prompt) + completion + [IGNORED] * gap)
    return torch.tensor(ids), torch.tensor(labels)
