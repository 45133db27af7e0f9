from __future__ import annotations

from pathlib import Path

import pytest
from optuna.study import StudyDirection

from study.sweep.claims.journal import BLOCK, cut_torn_line, open_journal


def made(path: Path, studies: int = 3) -> Path:
    storage = open_journal(path)
    for i in range(studies):
        storage.create_new_study([StudyDirection.MAXIMIZE], f"s{i}")
    return path


def names(path: Path) -> list[str]:
    return [s.study_name for s in open_journal(path).get_all_studies()]


def test_a_torn_last_line_is_cut_off_and_kept_before_the_next_entry(tmp_path: Path) -> None:
    path = made(tmp_path / "optuna.journal")
    whole = path.read_bytes()
    last = whole.splitlines(keepends=True)[-1]
    path.write_bytes(whole[:-15])
    storage = open_journal(path)
    assert [s.study_name for s in storage.get_all_studies()] == ["s0", "s1"]
    storage.create_new_study([StudyDirection.MAXIMIZE], "s3")
    assert names(path) == ["s0", "s1", "s3"]
    assert path.with_suffix(".torn").read_bytes() == last[:-15] + b"\n"


def test_a_line_torn_while_others_have_the_journal_open_harms_nobody(tmp_path: Path) -> None:
    path = made(tmp_path / "optuna.journal")
    others = [open_journal(path) for _ in range(2)]
    with path.open("ab") as file:
        file.write(b'{"op_code": 0, "study_na')
    for i, storage in enumerate(others):
        storage.create_new_study([StudyDirection.MAXIMIZE], f"later{i}")
    assert names(path) == ["s0", "s1", "s2", "later0", "later1"]
    assert [s.study_name for s in others[0].get_all_studies()] == names(path)


@pytest.mark.parametrize("tail", [b"", b"x", b"x" * (BLOCK - 1), b"x" * BLOCK, b"x" * 3 * BLOCK])
@pytest.mark.parametrize("head", [b"", b"a\n", b"a\n" * BLOCK])
def test_what_follows_the_last_newline_is_cut(tmp_path: Path, head: bytes, tail: bytes) -> None:
    path = tmp_path / "j.journal"
    path.write_bytes(head + tail)
    assert cut_torn_line(path) is (tail != b"")
    assert path.read_bytes() == head
    if tail:
        assert path.with_suffix(".torn").read_bytes() == tail + b"\n"


def test_an_unreadable_middle_is_said_in_a_sentence(tmp_path: Path) -> None:
    path = made(tmp_path / "optuna.journal")
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + b"{broken\n" + lines[2])
    with pytest.raises(ValueError, match=r"cannot be read as an Optuna journal .* move it away"):
        open_journal(path)
