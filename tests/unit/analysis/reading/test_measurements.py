"""Lines of measurements, read many files at once, against a reading of each line by itself."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.reading import measurements
from analysis.reading.measurements import gathered, parse

Row = tuple[str, int, float]


def by_line(content: bytes) -> tuple[list[Row], int]:
    """The rule, word by word: numbers but truth values, on object lines with an integer step."""
    rows, broken = [], 0
    for line in content.decode(errors="replace").split("\n"):
        if not line.strip():
            continue
        try:
            value: Any = json.loads(line)
        except json.JSONDecodeError:
            value = None
        if not isinstance(value, dict):
            broken += 1
        elif type(value.get("step")) is int:
            rows += [
                (name, value["step"], float(x))
                for name, x in value.items()
                if name != "step" and type(x) in (int, float)
            ]
    return sorted(rows, key=lambda row: row[0]), broken


def parsed(contents: Sequence[bytes]) -> list[tuple[list[Row], int]]:
    names: dict[str, int] = {}
    parts = parse(contents, names)
    assert list(names.values()) == list(range(len(names)))
    found = []
    for part in parts:
        m, rows, words = part.source, part.rows, list(names)
        columns = (m.metric[rows].tolist(), m.step[rows].tolist(), m.value[rows].tolist())
        triples = [(words[code], step, x) for code, step, x in zip(*columns, strict=True)]
        found.append((sorted(triples, key=lambda row: row[0]), part.broken))
    return found


NUMBERS = st.one_of(
    st.integers(-(2**70), 2**70), st.floats(allow_nan=False), st.sampled_from([0, 0.1, -0.0])
)  # fmt: skip
CELLS = st.one_of(NUMBERS, st.none(), st.booleans(), st.text(max_size=3),
                  st.lists(st.integers(), max_size=2), st.just({"a": 1}))  # fmt: skip
NAMES = st.sampled_from(["a", "train/loss", "eval/accuracy", "ü", 'q"', "step "])
STEPS = st.one_of(st.integers(0, 9), st.sampled_from([1.0, 2.5, None, True, "3"]))
OBJECTS = st.dictionaries(NAMES, CELLS, max_size=4)
WHOLE = st.builds(
    lambda row, step: json.dumps({"step": step, **row}, ensure_ascii=False),
    st.dictionaries(NAMES, NUMBERS, max_size=4),
    st.integers(0, 9),
)
LINES = st.one_of(
    WHOLE,
    st.builds(lambda row, step: json.dumps({**row, "step": step}), OBJECTS, STEPS),
    st.sampled_from(
        [
            "",
            " ",
            "[1]",
            "5",
            "null",
            '{"step": 1, "a": 2',
            '{"step": 1}{"a": 1}',
            "{",
            '{"step": 1, "a": NaN}',
            "\x00",
            '"step"',
            '{"a": 1e999, "step": 1}',
        ],
    ),
)


def content(lines: list[str], end: str) -> bytes:
    return ("\n".join(lines) + end).encode() if lines else b""


CLEAN = st.builds(content, st.lists(WHOLE, max_size=5), st.sampled_from(["", "\n"]))
ANY = st.builds(content, st.lists(LINES, max_size=4), st.sampled_from(["", "\n", "\n\n"]))


@settings(deadline=None, max_examples=150)
@given(st.lists(st.one_of(CLEAN, ANY), min_size=1, max_size=4))
def test_a_batch_reads_as_its_lines_do(contents: list[bytes]) -> None:
    # repr: NaN equals NaN, and -0.0 is not 0.0
    assert repr(parsed(contents)) == repr([by_line(one) for one in contents])


@settings(deadline=None, max_examples=50)
@given(st.lists(CLEAN, min_size=1, max_size=6))
def test_clean_files_read_as_their_lines_do(contents: list[bytes]) -> None:
    assert repr(parsed(contents)) == repr([by_line(one) for one in contents])


def test_clean_files_take_the_fast_way(monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(content: bytes) -> Any:
        raise AssertionError("read line by line")

    monkeypatch.setattr(measurements, "json_lines", slow)
    line = b'{"step": 1, "a": 0.5, "b": null, "c": "text", "d": true}\n'
    assert parsed([line * 3, b"", line]) == [
        ([("a", 1, 0.5)] * 3, 0), ([], 0), ([("a", 1, 0.5)], 0),
    ]  # fmt: skip


def test_a_line_without_a_step_measures_nothing() -> None:
    lines = [b'{"step": 2, "a": 1.5}', b'{"a": 9.5}', b'{"step": null, "a": 8.5}']
    assert parsed([b"\n".join(lines)]) == [([("a", 2, 1.5)], 0)]
    assert parsed([lines[1]]) == [([], 0)]


def test_a_line_longer_than_a_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measurements, "BLOCK_BYTES", 64)
    line = json.dumps({"step": 3, "a": 1.5, "text": "x" * 200}).encode()
    assert parsed([line + b"\n" + line, b'{"step": 1, "a": 2}']) == [
        ([("a", 3, 1.5)] * 2, 0), ([("a", 1, 2.0)], 0),
    ]  # fmt: skip


def test_numbers_keep_every_digit() -> None:
    values = [0.1, 1 / 3, math.pi * 1e-300, 5e-324, 1.7976931348623157e308, 2.0**53 + 2]
    lines = [json.dumps({"step": i, "a": x}) for i, x in enumerate(values)]
    ((rows, _),) = parsed(["\n".join(lines).encode()])
    assert [x for _, _, x in rows] == values


def test_files_are_gathered_in_the_order_asked_for() -> None:
    names: dict[str, int] = {}
    lines = [b'{"step": 1, "a": %d}' % i for i in range(3)]
    one, two, three = parse(lines, names)
    (four,) = parse([b'{"step": 2, "b": 9, "a": 8}'], names)

    found = gathered([four, two, one])
    assert found.value.tolist() == [8.0, 9.0, 1.0, 0.0]
    assert found.step.tolist() == [2, 2, 1, 1]
    assert found.metric.tolist() == [0, 1, 0, 0]
    assert gathered([one, two, three]) is one.source  # as they lie: not copied
    assert len(gathered([])) == 0
