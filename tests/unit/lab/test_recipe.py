"""The recipe: sane numbers, a corpus from the train role only, repeatable builds."""

import dataclasses
import json
from pathlib import Path
from random import Random

import pytest

from study.lab import LAB_MODELS
from study.lab.build import build
from study.lab.corpus import IGNORED, batches, draw_training_exercise
from study.lab.pretrain import learning_rate_at
from study.lab.recipe import RECIPES, Recipe, Stage
from study.lab.tokenizer import EOS_ID, build_tokenizer
from study.tasks.arithmetic import stated_answer
from study.tasks.base import prompt_role
from study.tasks.families import FAMILIES

STAGE = Stage(steps=2, learning_rate=1e-2, warmup=1, final_ratio=0.1, corrupted=0.5)
TINY = Recipe(
    name="tiny",
    hidden_size=8,
    layers=1,
    heads=2,
    key_value_heads=1,
    stages=(STAGE, STAGE),
    minutes=1,
    batch_size=4,
    family_shares={"sum3": 0.5, "sorting": 0.5},
)


def test_there_is_a_recipe_for_every_lab_model() -> None:
    assert tuple(RECIPES) == LAB_MODELS
    for recipe in RECIPES.values():
        assert sum(recipe.family_shares.values()) == pytest.approx(1)
        assert set(recipe.family_shares) == set(FAMILIES)
        assert recipe.stages[0].corrupted == 0


@pytest.mark.parametrize("family", FAMILIES)
def test_corpus_draws_from_the_train_role_only(family: str) -> None:
    rng = Random(3)
    draws = [draw_training_exercise(FAMILIES[family], rng) for _ in range(2000)]
    assert {prompt_role(exercise.prompt) for exercise in draws} == {"train"}


def test_labels_cover_solution_and_end_only() -> None:
    tokenizer = build_tokenizer()
    ids, labels = next(batches(TINY, STAGE, Random(0)))
    assert ids.shape == labels.shape
    for row, label in zip(ids.tolist(), labels.tolist(), strict=True):
        kept = [token for token in label if token != IGNORED]
        assert kept[-1] == EOS_ID
        text = tokenizer.decode(row, skip_special_tokens=True)
        prompt = text[: text.index("=") + 1]
        assert prompt + tokenizer.decode(kept[:-1]) == text


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_corrupted_share_decides_whether_answers_are_right(share: float) -> None:
    stage = dataclasses.replace(STAGE, steps=20, corrupted=share)
    recipe = dataclasses.replace(TINY, family_shares={"sum3": 1.0})
    tokenizer = build_tokenizer()
    for ids, _ in batches(recipe, stage, Random(0)):
        for text in tokenizer.batch_decode(ids, skip_special_tokens=True):
            prompt, _, solution = text.partition("=")
            assert (int(stated_answer(solution)) == eval(prompt)) == (share == 0.0)


def test_learning_rate_warms_up_to_its_peak_and_decays() -> None:
    stage = Stage(steps=110, learning_rate=1.0, warmup=10, final_ratio=0.1, corrupted=0)
    assert learning_rate_at(stage, 0) == pytest.approx(0.1)
    assert learning_rate_at(stage, 10) == pytest.approx(1.0)
    assert learning_rate_at(stage, 60) == pytest.approx(0.55)
    assert learning_rate_at(stage, 110) == pytest.approx(0.1)


def test_build_is_repeatable_and_complete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("study.lab.build.MEASURED_PROMPTS", 2)
    seen: list[int] = []
    records = [
        build(TINY, tmp_path / name, lambda done, loss: seen.append(done)) for name in ("a", "b")
    ]
    assert seen == [1, 2, 3, 4] * 2
    assert records[0] == records[1]
    assert json.loads((tmp_path / "a" / "lab.json").read_text())["sha256"] == records[0]["sha256"]
    assert records[0]["accuracy"]["sum3"]["n"] == 2
