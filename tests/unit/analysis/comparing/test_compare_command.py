"""``python -m analysis compare``: what it prints, its JSON, and one sentence for bad input."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from analysis.__main__ import main
from analysis.simulate.store import Flaws, SimulatedArm, rank_arms, write_experiment


@pytest.fixture(name="a", scope="module")
def _a(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_experiment(tmp_path_factory.mktemp("runs") / "a", rank_arms((1, 8), ratio=10))


@pytest.fixture(name="b", scope="module")
def _b(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twice as wide, and LoRA wants a thirtieth of what it wants over FullFT in A."""
    arms = {
        name: replace(arm, overrides={**arm.overrides, "model.name": "lab128"})
        for name, arm in rank_arms((1, 8, 16), ratio=0.3).items()
    }
    return write_experiment(tmp_path_factory.mktemp("runs") / "b", arms, rng_seed=1)


def printed(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert main(["compare", *map(str, arguments)]) == 0
    return capsys.readouterr().out


def test_the_answers_come_before_the_numbers(
    a: Path, b: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = printed(capsys, a, b).splitlines()
    assert lines[0].startswith(f"A  {a}: model lab64, task arithmetic (sum3), 3 search seeds and 5")
    assert "  model.name: lab64 -> lab128" in lines
    assert "  model.hidden_size: 64 -> 128" in lines
    assert "Only in B: LoRA at rank 16 (lora-r16)" in lines
    asked = lines.index(
        "Is the LoRA/FullFT ratio of learning rates the same (within a factor of 2)?"
    )
    assert lines[asked + 1].startswith("  different: all arms (the interval lies wholly outside")
    tables = [i for i, line in enumerate(lines) if line.startswith("  arm ")]
    assert len(tables) == 5 and tables[0] > asked
    assert "\x1b" not in "".join(lines)  # plain into a pipe


def test_json_has_an_interval_or_a_reason_for_every_number(
    a: Path, b: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tree = json.loads(printed(capsys, a, b, "--json"))
    assert [row["a"]["name"] for row in tree["arms"]] == ["full", "lora-r1", "lora-r8"]
    assert [facts["name"] for facts in tree["only_b"]] == ["lora-r16"]
    found = list(quantities(tree["arms"]))
    assert len(found) == 3 * (3 + 3 + 3 + 2) + 2 * (3 + 3)
    for quantity in found:
        assert quantity["interval"] is not None or quantity["reason"]
        if quantity["interval"] is not None:
            low, high = quantity["interval"]
            assert low <= quantity["point"] <= high and quantity["n"] >= 3
    ratio = tree["arms"][1]["over_full"]
    assert ratio["a"]["interval"][0] < 10 < ratio["a"]["interval"][1]
    assert ratio["b"]["interval"][0] < 0.3 < ratio["b"]["interval"][1]
    low, high = ratio["ratio_of_ratios"]["interval"]
    assert low < 0.03 < high
    assert {v["question"] for v in tree["verdicts"]} == {"learning_rate", "ratio_of_ratios", "gap"}


def quantities(value: Any) -> Any:
    """Every number of the tree."""
    if isinstance(value, list):
        for item in value:
            yield from quantities(item)
    elif isinstance(value, dict):
        if "point" in value:
            yield value
        for item in value.values():
            yield from quantities(item)


def test_an_unfinished_experiment_is_compared_without_verdicts(
    a: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flaws = Flaws(missing=0.2)
    b = write_experiment(tmp_path / "b", rank_arms((1,)), flaws=flaws, rng_seed=2)
    out = printed(capsys, a, b)
    assert ", unfinished: " in out.splitlines()[1]
    assert "undecided: all arms (B is unfinished, " in out
    assert " same: " not in out and " different: " not in out


def test_a_csv_of_others_is_compared_with_ours(
    a: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shape = (0.2, 0.5, 0.82, 0.84, 0.83, 0.81, 0.3, 0.0)
    rows = ["method,lora_rank,lr,seed,acc,base"]
    for method, rank, first in (("full", "", -5.5), ("lora", "8", -4.5)):
        for i, score in enumerate(shape):
            rows += [
                f"{method},{rank},{10 ** (first + i / 4):.4g},{seed},{score + offset},0.18"
                for seed, offset in enumerate((0.0, 0.004 * (i % 3), 0.01))
            ]
    (tmp_path / "theirs.csv").write_text("\n".join(rows) + "\n")
    theirs = tmp_path / "theirs"
    columns = "score_final=acc,score_base=base,learning_rate=lr,lora_rank=lora_rank"
    source = str(tmp_path / "theirs.csv")
    assert main(["import", source, "--map", columns, "--out", str(theirs)]) == 0
    capsys.readouterr()

    out = printed(capsys, a, theirs)
    assert "Matched arms: full" in out and "lora-r8" in out
    assert "not stated in B: " in out
    assert "Note: B is imported: what its source does not state is not compared." in out
    tree = json.loads(printed(capsys, a, theirs, "--json"))
    lora = next(row for row in tree["arms"] if row["a"]["name"] == "lora-r8")
    assert lora["learning_rate"]["ratio"]["interval"] is not None
    assert lora["gain"]["difference"]["reason"].startswith("A is scored by eval/accuracy and B by")
    assert lora["gain"]["difference"]["reason"].endswith("import with --set score_metric=NAME")


def test_a_noise_sweep_without_a_best_rate_is_an_explanation(
    a: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arms = rank_arms((1,))
    flat = {
        name: SimulatedArm(replace(arm.truth, rise=0.0), arm.learning_rates, arm.overrides)
        for name, arm in arms.items()
    }
    b = write_experiment(tmp_path / "flat", flat, rng_seed=3)
    out = printed(capsys, a, b)
    assert "the scores rise too little over the untrained model for their noise" in out


def test_bad_input_is_one_sentence_and_exit_code_two(
    a: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    only = write_experiment(tmp_path / "r4", {"lora-r4": rank_arms((4,))["lora-r4"]})
    for other, said in (
        (a, "A and B are the same experiment"),
        (tmp_path / "nowhere", "no such experiment directory"),
        (only, "no common arm"),
    ):
        assert main(["compare", str(a), str(other)]) == 2
        shown = capsys.readouterr()
        assert shown.out == "" and shown.err.count("\n") == 1
        assert shown.err.startswith("error: ") and said in shown.err


@pytest.mark.timeout(120)
def test_both_commands_need_neither_torch_nor_matplotlib(a: Path, b: Path) -> None:
    code = (
        "import sys; from analysis.cli import compare, recommend\n"
        "from argparse import Namespace\n"
        f"compare.run(Namespace(a={str(a)!r}, b={str(b)!r}, experiment=[], json=False))\n"
        f"recommend.run(Namespace(runs=[{str(a)!r}], experiment=[], method='lora', rank=None,\n"
        "    model_family=None, hidden_size=None, json=True))\n"
        "heavy = {'torch', 'trl', 'peft', 'wandb', 'hydra', 'matplotlib'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
