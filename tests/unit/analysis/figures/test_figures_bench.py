"""From the bench's JSON file to figures: numbers first, then that they are drawn."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure

from analysis.__main__ import main
from analysis.figures.bench import draw_ratios, draw_scaling, write_bench_figures
from analysis.reading.bench_file import Span, bench_figures, read_bench


def span(median: float) -> dict[str, float]:
    return {"median": median, "low": median / 2, "high": median * 2}


def measurement(**changes: Any) -> dict[str, Any]:
    """Two paired cases, and a pack of one and of eight."""
    rounds = [{"trl": {"step_s": s}, "packed": {"step_s": 0.01}} for s in (0.3, 0.1, 0.2)]
    case = {"model": "lab64", "rows": 16, "method": "lora", "reward": "parity", "lanes": 16}
    shown = {"ratio": span(6.0), "floor_share": span(0.4), "rounds": rounds}
    pack = {key: case[key] for key in ("model", "rows", "method", "reward")}
    return {
        "machine": {"cpu": "a CPU", "gpu": None, "quiet": True},
        "steps": [{**case, **shown}, {**case, **shown, "method": "full", "reward": "task"}],
        "scaling": [
            {**pack, "lanes": 8, "step_s": span(0.02), "speedup": span(2.0)},
            {**pack, "lanes": 1, "step_s": span(0.04), "speedup": span(1.0)},
        ],
        **changes,
    }


def test_what_is_drawn_is_what_was_measured() -> None:
    data = bench_figures(measurement())
    assert data.subject == "a CPU, one thread"
    first, second = data.steps
    assert (first.label, first.method, first.reward) == ("lab64, 16 rows", "LoRA", "parity")
    assert (second.method, second.reward) == ("FullFT", "task")
    assert first.ratio == Span(6.0, 3.0, 12.0)
    (curve,) = data.scaling
    assert (curve.rows, curve.lanes) == (16, [1, 8])
    assert [point.median for point in curve.step_s] == [0.04, 0.02]
    assert curve.trl_step_s == 0.2  # the median of the same runs' rounds


def test_a_busy_machine_is_named_and_missing_parts_are_empty() -> None:
    machine = {"cpu": "a CPU", "gpu": "a GPU", "quiet": False}
    data = bench_figures({"machine": machine, "scaling": measurement()["scaling"]})
    assert data.subject == "a GPU, one thread; the machine was busy: quote no figure"
    assert data.steps == []
    assert data.scaling[0].trl_step_s is None


def test_the_axes_show_every_case_and_every_pack() -> None:
    data = bench_figures(measurement())
    ratios, scaling = Figure().subplots(), Figure().subplots()
    draw_ratios(data, ratios)
    draw_scaling(data, scaling)
    rows = [label.get_text() for label in ratios.get_yticklabels()]
    assert rows == ["lab64, 16 rows, LoRA", "lab64, 16 rows, FullFT"]
    assert ratios.get_xlim()[1] > 12
    assert list(scaling.get_xticks()) == [1, 8]


def test_the_command_draws_beside_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bench.json").write_text(json.dumps(measurement()))
    assert main(["figure", "bench", str(tmp_path / "bench.json")]) == 0
    shown = capsys.readouterr().out.split()
    assert shown == [str(tmp_path / f"bench_{name}.png") for name in ("ratios", "scaling")]
    for path in map(Path, shown):
        assert path.read_bytes().startswith(b"\x89PNG")
        assert path.with_suffix(".pdf").exists()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "is not there"),
        ("{", "is not valid JSON"),
        ("{}", "was not written by python -m study.bench: it lacks 'machine'"),
        (json.dumps(measurement(steps=[{}])), "was not written by python -m study.bench"),
        (json.dumps(measurement(steps=[], scaling=[])), "nothing to draw"),
    ],
)
def test_a_file_that_cannot_be_drawn_is_one_sentence(
    text: str | None, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bench.json"
    if text is not None:
        path.write_text(text)
    assert main(["figure", "bench", str(path)]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("error: ") and said in printed.err
    assert printed.err.count("\n") == 1


def test_a_directory_cannot_be_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["figure", "bench", str(tmp_path)]) == 2
    assert capsys.readouterr().err == f"error: {tmp_path} cannot be read (Is a directory)\n"


def test_spans_are_numbers(tmp_path: Path) -> None:
    broken = measurement()
    broken["steps"][0]["ratio"]["low"] = "low"
    (tmp_path / "bench.json").write_text(json.dumps(broken))
    with pytest.raises(ValueError, match="a spread is made of numbers"):
        read_bench(tmp_path / "bench.json")


def test_one_part_alone_is_drawn(tmp_path: Path) -> None:
    data = bench_figures(measurement(scaling=[]))
    assert write_bench_figures(data, tmp_path, "bench") == [tmp_path / "bench_ratios.png"]
