"""What the parts of the measurement make of their figures, with hand-worked values."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from rich.console import Console

from study.bench import __main__ as command
from study.bench import machine
from study.bench.cases import overrides, parity, rewarding, step_cases
from study.bench.memory import memory_summary, peak_bytes
from study.bench.steps import Round, scaling_summary, summary
from study.bench.sweeps import Finished, Size, read_sweep, sweep_summary
from study.bench.tables import print_part, times_with_spread
from study.bench.watch import Sample
from study.compose import compose
from study.tasks.arithmetic import ArithmeticTask
from study.tasks.base import Problem

PROBLEM = Problem(prompt_id="p", prompt="1+1+1=", answer="3", solution="2+1=3")


def sample(step_s: float, busy_s: float = 1.0, evaluation_s: float = 1.0) -> Sample:
    return Sample(
        step_s=step_s,
        step_busy_s=busy_s,
        evaluation_s=evaluation_s,
        unequal_share=0.9,
        completion_tokens=11.0,
    )


ROUNDS = [
    Round(trl=sample(6, 5, 3), packed=sample(1, 1, 2), floor_s=0.5, gemm_flops=4e10),
    Round(trl=sample(8, 6, 4), packed=sample(2, 1, 1), floor_s=0.3, gemm_flops=5e10),
    Round(trl=sample(5, 4, 2), packed=sample(1, 2, 1), floor_s=0.4, gemm_flops=6e10),
]


def test_ratios_are_taken_round_by_round() -> None:
    found = summary(ROUNDS)
    assert found["ratio"] == {"median": 5.0, "low": 4.0, "high": 6.0}
    assert found["busy_ratio"] == {"median": 5.0, "low": 2.0, "high": 6.0}
    assert found["evaluation_ratio"] == {"median": 2.0, "low": 1.5, "high": 4.0}
    assert found["floor_share"] == {"median": 0.3, "low": 0.2, "high": 0.5}
    assert found["trl_floor_share"] == pytest.approx({"median": 0.1, "low": 0.05, "high": 0.1})
    assert found["rounds"][0]["trl"]["step_s"] == 6
    json.dumps(found, allow_nan=False)


def test_scaling_is_relative_to_one_lane_of_the_same_round() -> None:
    rounds = [{1: sample(4, 2), 8: sample(1, 1)}, {1: sample(6, 6), 8: sample(3, 2)}]
    assert scaling_summary(rounds, 8) == {
        "step_s": {"median": 2.0, "low": 1.0, "high": 3.0},
        "step_busy_s": {"median": 1.5, "low": 1.0, "high": 2.0},
        "speedup": {"median": 3.0, "low": 2.0, "high": 4.0},
        "busy_speedup": {"median": 2.5, "low": 2.0, "high": 3.0},
    }


def test_memory_leaves_the_states_out() -> None:
    found = memory_summary(imported=300, one=500, pack=900, states=150)
    assert found["ratio"] == 1.5


def test_peak_is_that_of_this_process() -> None:
    assert 2e7 < peak_bytes() < 1e11


def finished(wall_s: float, training_s: float, **scores: float) -> Finished:
    return Finished(wall_s=wall_s, training_s=training_s, scores=dict(scores))


def test_sweeps_are_compared_run_by_run() -> None:
    size = Size(seeds=3, steps=48, evaluations=3)
    both = {"trl": finished(90, 80, a=0.5, b=0.25), "packed": finished(30, 20, a=0.5, b=0.5)}
    found = sweep_summary(64, size, both)
    assert (found["runs"], found["evaluations"]) == (36, 4)
    assert (found["ratio"], found["training_ratio"], found["equal_scores"]) == (3.0, 4.0, 1)


def test_a_sweep_is_timed_from_the_first_start_to_the_last_record(tmp_path: Path) -> None:
    for run, start, end in (("a", 1000, 1010), ("b", 1005, 1030)):
        directory = tmp_path / "arm" / run
        directory.mkdir(parents=True)
        (directory / "config.yaml").write_text("")
        (directory / "record.json").write_text('{"score_final": 0.5}')
        os.utime(directory / "config.yaml", (start, start))
        os.utime(directory / "record.json", (end, end))
    found = read_sweep(tmp_path, wall_s=40.0)
    assert found == Finished(wall_s=40.0, training_s=30.0, scores={"a": 0.5, "b": 0.5})


def test_nothing_is_left_of_a_sweep_that_failed(tmp_path: Path) -> None:
    assert read_sweep(tmp_path, 1.0).scores == {}


def test_the_shapes_are_those_that_are_promised() -> None:
    shapes = {(case.model, case.rows, case.method) for case in step_cases()}
    sizes = (("lab64", 16), ("lab64", 64), ("lab128", 8), ("lab128", 32))
    assert shapes == {(*size, method) for size in sizes for method in ("lora", "full")}
    for case in step_cases():
        assert case.prompts * case.num_generations == case.rows
        assert case.rows * case.lanes <= 512


def test_a_case_is_a_run_as_the_command_line_knows_it() -> None:
    (case, *_) = [case for case in step_cases() if case.rows == 8 and case.method == "lora"]
    config = compose(overrides(case, 15, 64)).run()
    assert (config.objective.prompts_per_step, config.objective.num_generations) == (2, 4)
    assert config.evaluation.steps(config.objective.steps) == [0, 15]
    assert config.model.name == "lab128"


def test_parity_has_no_sense_and_is_gone_afterwards() -> None:
    task = ArithmeticTask()
    texts = [str(number) for number in range(200)]
    with rewarding("parity"):
        rewards = [task.score(PROBLEM, text).reward for text in texts]
        assert rewards == [parity(task, PROBLEM, text).reward for text in texts]
    assert 70 < sum(rewards) < 130
    with rewarding("task"):
        assert task.score(PROBLEM, "3").correct and not task.score(PROBLEM, "4").correct


@pytest.mark.parametrize(
    ("start", "end", "quiet"), [(0.1, 1.2, True), (1.5, 1.0, False), (0.1, 1.5, False)]
)
def test_two_cores_are_quiet_up_to_a_load_of_one_and_a_bit(
    start: float, end: float, quiet: bool
) -> None:
    assert machine.is_quiet(start, end, cores=2) is quiet


def test_spreads_in_words() -> None:
    assert times_with_spread({"median": 6.14, "low": 5.8, "high": 6.44}) == "6.1x (5.8 to 6.4)"


def test_tables_show_medians_over_rounds() -> None:
    facts = {"hidden_size": 64, "layers": 2, "rows": 16, "method": "lora", "reward": "task"}
    console = Console(width=200)
    with console.capture() as shown:
        print_part("steps", [{**facts, "lanes": 16, **summary(ROUNDS)}], console)
    text = shown.get()
    assert "64 x 2, 16 rows, lora" in text
    assert "5.0x (4.0 to 6.0)" in text
    assert "6000.0 ms" in text  # TRL's median step
    assert "30%" in text and "400.0 ms" in text  # share of the floor, and the floor


def test_every_part_is_written_as_soon_as_it_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = memory_summary(imported=300, one=500, pack=900, states=150)
    facts = {
        "cpu": "a CPU", "gpu": None, "cores": 2, "threads": 1, "packages": {"torch": "2"},
        "load_average": {"start": 0.0, "end": 3.0}, "quiet": False,
    }  # fmt: skip
    monkeypatch.setattr(command, "use_one_thread", lambda: None)
    monkeypatch.setattr(command, "machine_facts", lambda start, end: facts)
    monkeypatch.setattr(command, "measurements", lambda quick: {"memory": lambda console: found})
    command.main(["--only", "memory", "--json", str(tmp_path / "bench.json")])
    assert json.loads((tmp_path / "bench.json").read_text()) == {"machine": facts, "memory": found}
    shown = capsys.readouterr().out
    assert "1.50" in shown and "quote no figure" in shown


def test_quick_leaves_the_sweep_out_unless_it_is_named() -> None:
    assert "sweep" in command.parse([]).only
    assert "sweep" not in command.parse(["--quick"]).only
    assert command.parse(["--quick", "--only", "sweep"]).only == ["sweep"]
