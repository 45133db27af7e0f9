from __future__ import annotations

import errno

import pytest

from study import cli


@pytest.fixture(autouse=True)
def without_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "SHOW_TRACE", False)


def test_a_full_disk_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left, cli.reporting_user_errors():
        raise OSError(errno.ENOSPC, "No space left on device", "runs/x/plan.json")
    assert left.value.code == 2
    assert capsys.readouterr().err == (
        "error: the disk is full (runs/x/plan.json); free some space, then the same command "
        "resumes\n"
    )


def test_other_errors_of_the_system_keep_their_trace() -> None:
    with pytest.raises(FileNotFoundError), cli.reporting_user_errors():
        raise FileNotFoundError("gone")
