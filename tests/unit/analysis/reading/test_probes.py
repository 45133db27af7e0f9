"""Files of probes as a sweep has them."""

from __future__ import annotations

from pathlib import Path

import pytest

from analysis.reading.probes import at, read_probes, unmeasured
from study.records.files import write_json


def test_files_of_this_version_are_read_and_others_are_none(tmp_path: Path) -> None:
    write_json(tmp_path / "a" / "1" / "probes.json", {"schema_version": 2, "weights": {"x": 1}})
    write_json(tmp_path / "a" / "2" / "probes.json", {"schema_version": 1, "x": 1})
    (tmp_path / "a" / "3").mkdir()
    (tmp_path / "a" / "3" / "probes.json").write_text("{")
    places = [("a", name) for name in "1234"]
    assert read_probes(tmp_path, places) == {"1": {"schema_version": 2, "weights": {"x": 1}}}
    assert read_probes(None, places) == {}


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        (("weights", "n"), 3.0),
        (("weights", "n", "deeper"), None),
        (("weights", "yes"), None),
        (("weights", "none"), None),
        (("absent", "n"), None),
    ],
)
def test_a_number_is_found_or_none(keys: tuple[str, ...], expected: float | None) -> None:
    content = {"weights": {"n": 3, "yes": True, "none": None}}
    assert at(content, *keys) == expected


def test_reasons() -> None:
    assert (
        unmeasured({"weights": {"failed": "ValueError: x"}}, "weights") == "failed: ValueError: x"
    )
    assert unmeasured({"weights": {"left_out": "save=none"}}, "weights") == "save=none"
    assert unmeasured({"weights": {"trained": {}}}, "weights") == ""
    assert unmeasured({}, "weights") == ""
