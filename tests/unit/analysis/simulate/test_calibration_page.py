"""CALIBRATION.md: it can be regenerated, is not stale, and keeps the promises it is there for."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from analysis.simulate import calibrate
from analysis.simulate.regimes import REGIMES

TEXT = (calibrate.HERE / "calibration_text.md").read_text(encoding="utf-8")
PAGE = (calibrate.HERE / "CALIBRATION.md").read_text(encoding="utf-8")
SHARE = re.compile(r"(\d+) ±(\d+\.\d)")


def rows(heading: str) -> dict[str, list[str]]:
    """Cells of the table under a heading, by regime."""
    section = PAGE.split(f"## {heading}")[1].split("\n## ")[0]
    lines = [line.strip("| ").split(" | ") for line in section.splitlines() if line[:1] == "|"]
    return {cells[0]: cells[1:] for cells in lines[2:]}


def test_the_prose_of_the_page_is_that_of_its_source() -> None:
    fixed = [line for line in TEXT.splitlines() if line.strip() and "<!--" not in line]
    missing = [line for line in fixed if line not in PAGE]
    assert not missing
    assert "<!--" not in PAGE


def test_every_interval_of_lr_star_and_ratio_covers_in_every_regime() -> None:
    found = rows("LR* and its ratio")
    assert set(found) == set(REGIMES)
    for regime, cells in found.items():
        shares = [SHARE.match(cell) for cell in cells[:6]]
        assert all(share is not None and int(share[1]) >= 86 for share in shares), regime


def test_every_interval_of_a_score_difference_covers_in_every_regime() -> None:
    found = rows("Score differences")
    assert set(found) == set(REGIMES)
    for regime, cells in found.items():
        shares = [SHARE.match(cell) for cell in (*cells[:3], *cells[6:9])]
        assert all(share is not None and int(share[1]) >= 86 for share in shares), regime


def test_the_page_is_written_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibrate, "PARITY_REPLICATIONS", 10)
    monkeypatch.setattr(calibrate, "SEEDS", (3,))
    calibrate.main(2, tmp_path)
    page = (tmp_path / "CALIBRATION.md").read_text(encoding="utf-8")
    assert "<!--" not in page
    assert all(page.count(f"| {regime} |") >= 3 for regime in REGIMES)
