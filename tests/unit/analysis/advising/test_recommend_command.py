"""``python -m analysis recommend``: what it prints, its JSON, and one sentence for bad input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from analysis.__main__ import main
from analysis.simulate.store import rank_arms, write_experiment


def printed(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert main(["recommend", *map(str, arguments)]) == 0
    return capsys.readouterr().out


def test_it_opens_with_the_answer_and_ends_with_what_to_paste(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_experiment(tmp_path / "mine", rank_arms((1, 8)))
    lines = printed(capsys, path, "--method", "lora", "--rank", "8").splitlines()
    assert lines[0].startswith("GRPO with LoRA at rank 8 (model family not said, hidden size 64): ")
    assert lines[0].endswith("from your own sweep, nearest arm: lora-r8")
    assert lines[-1].startswith("  python -m study -m model=lab64 method=lora method.rank=8 ")
    assert lines[-3].startswith("  python -m study -m experiment=quickstart name=my-sweep ")
    assert f"  lora-r8 of {path} (lab64, arithmetic): " in "\n".join(lines)


def test_from_rules_alone(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("--method", "lora", "--model-family", "qwen3", "--hidden-size", "2560")
    assert "no interval published" in printed(capsys, *arguments)
    tree = json.loads(printed(capsys, *arguments, "--json"))
    assert tree["learning_rate"]["own"] == [] and tree["rank"]["rank"] == 32
    assert tree["overrides"]["arm"][-1] == "seed=0,1,2"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--method", "full", "--rank", "8"], "--rank is read with --method lora only"),
        (["--method", "lora", "--model-family", "gemma"], "known are llama, qwen3"),
        (["nowhere", "--method", "lora"], "no such experiment directory: nowhere"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_two(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["recommend", *arguments]) == 2
    shown = capsys.readouterr()
    assert shown.out == "" and shown.err.count("\n") == 1 and said in shown.err
