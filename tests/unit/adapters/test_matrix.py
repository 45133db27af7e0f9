"""Adapters by tasks in packed passes, against TRL's way of evaluating each with PEFT."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
import torch
from matplotlib.figure import Figure
from peft import PeftModel
from scipy.stats import binomtest

from analysis.figures.adapters import draw_matrix
from analysis.reading.adapters_file import read_adapters
from study.adapters.__main__ import main
from study.adapters.matrix import NONE, Row, evaluate, task_of
from study.adapters.stored import Adapter
from study.config import TaskConfig
from study.tasks.loading import load_task
from study.train.models import load_model, load_tokenizer
from tests.unit.adapters.stored_adapters import OTHER_TARGETS, named, write_adapter
from tests.unit.probes.stored_runs import LAB

PROMPTS = 24


@pytest.fixture(scope="module")
def adapters(tmp_path_factory: pytest.TempPathFactory) -> list[Adapter]:
    home = tmp_path_factory.mktemp("adapters")
    one = write_adapter(home / "a" / "one", 1, scale=0.02)
    two = write_adapter(home / "a" / "two", 2, rank=3, scale=0.02, targets=OTHER_TARGETS)
    return named(one=one, two=two)


@pytest.fixture(scope="module")
def tasks(adapters: list[Adapter]) -> list[TaskConfig]:
    like = dataclasses.replace(adapters[0].config.task, max_completion_length=14)
    return [task_of(name, like) for name in ("sum3", "sorting", "difference")]


def greedy_share(model: torch.nn.Module, task: TaskConfig) -> float:
    """Greedy accuracy by the library's ``generate``, a prompt at a time."""
    known, tokenizer, right = load_task(task), load_tokenizer(LAB), 0
    for problem in known.problems("report", PROMPTS):
        ids = tokenizer(problem.prompt, return_tensors="pt")["input_ids"]
        longest = task.max_completion_length
        out = model.generate(input_ids=ids, do_sample=False, max_new_tokens=longest, pad_token_id=0)
        text = tokenizer.decode(out[0, ids.size(1) :], skip_special_tokens=True)
        right += known.score(problem, text).correct
    return right / PROMPTS


def test_each_cell_is_that_of_the_adapter_alone(
    adapters: list[Adapter], tasks: list[TaskConfig]
) -> None:
    one, two = adapters
    rows = [Row(NONE), Row("one", ((1.0, one),)), Row("both", ((1.0, one), (1.0, two)))]
    told: list[int] = []
    found = evaluate(rows, tasks, PROMPTS, told.append)
    assert sum(told) == 2 * 3 * 3 * PROMPTS
    cells = {(c["adapter"], c["task"]): c for c in found["cells"]}
    both = PeftModel.from_pretrained(load_model(LAB), str(one.path), adapter_name="one")
    both.load_adapter(str(two.path), adapter_name="two")
    both.base_model.set_adapter(["one", "two"])
    models = {
        NONE: load_model(LAB),
        "one": PeftModel.from_pretrained(load_model(LAB), str(one.path)),
        "both": both,
    }
    for name, model in models.items():
        for task in tasks:
            cell = cells[name, task.label]
            assert cell["greedy_accuracy"] == greedy_share(model.eval(), task), (name, task.label)
            known = binomtest(round(cell["accuracy"] * PROMPTS), PROMPTS)
            interval = known.proportion_ci(0.9, method="wilson")
            assert (cell["low"], cell["high"]) == (interval.low, interval.high)


def test_a_cell_does_not_depend_on_its_neighbours(
    adapters: list[Adapter], tasks: list[TaskConfig]
) -> None:
    one, two = adapters
    row = Row("one", ((1.0, one),))
    alone = evaluate([row], tasks[:1], PROMPTS)
    among = evaluate([Row(NONE), Row("two", ((1.0, two),)), row], tasks, PROMPTS)
    (cell,) = alone["cells"]
    assert cell in among["cells"]
    assert alone["base_hash"] == among["base_hash"]


def test_an_unknown_family_is_refused(adapters: list[Adapter]) -> None:
    with pytest.raises(ValueError, match="unknown arithmetic family 'sort'"):
        task_of("sort", adapters[0].config.task)


def test_from_the_command_to_the_figure(
    adapters: list[Adapter], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    places = [f"{own.name}={own.run.path}" for own in adapters]
    out = tmp_path / "adapters.json"
    main(["eval", *places, "--tasks", "sum3", "gcd", "--prompts", "8", "--out", str(out)])
    printed = capsys.readouterr().out
    assert "one+two" in printed and "bit-identical before and after" in printed
    data = read_adapters(out)
    assert data.adapters == [NONE, "one", "two", "one+two"]
    assert data.tasks == ["arithmetic-sum3", "arithmetic-gcd"]
    ax = Figure().subplots()
    draw_matrix(data, ax)
    cell = data.cells["one+two", "arithmetic-gcd"]
    shown = f"{cell.accuracy:.2f} [{cell.low:.2f}, {cell.high:.2f}]\ngreedy {cell.greedy:.2f}"
    assert shown in [text.get_text() for text in ax.texts]
    assert len(ax.texts) >= 8


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    file.write_text(json.dumps({"rows": ["none"], "tasks": ["t"], "cells": []}))
    with pytest.raises(ValueError, match=r"was not written by .* it lacks"):
        read_adapters(file)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["eval", "--combine", "one+three"], "--combine one+three must name adapters"),
        (["eval", "--prompts", "0"], "--prompts must be at least 1, got 0"),
        (["combine", "--weights", "1", "--out", "o"], "one an adapter, got 1 for 2 adapters"),
    ],
)
def test_what_cannot_be_done_is_said(
    adapters: list[Adapter], arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    places = [f"{own.name}={own.run.path}" for own in adapters]
    with pytest.raises(SystemExit, match="2"):
        main([arguments[0], *places, *arguments[1:]])
    assert said in capsys.readouterr().err


def test_a_list_names_rank_and_score(
    adapters: list[Adapter], capsys: pytest.CaptureFixture[str]
) -> None:
    main(["list", *(f"{own.name}={own.run.path}" for own in adapters)])
    printed = capsys.readouterr().out
    assert "one" in printed and "two" in printed and "0.500" in printed


def test_settings_of_other_tasks_are_not_named_by_family(adapters: list[Adapter]) -> None:
    @dataclasses.dataclass(kw_only=True)
    class Other(TaskConfig):
        pass

    with pytest.raises(ValueError, match="tasks are named by arithmetic families, got sum3"):
        task_of("sum3", Other(name="other", train_prompts=8, max_completion_length=8))
