"""Machines that share a disk over a network: stale looks, lost answers, files that are replaced."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from study.records.files import READS, link_first, look_afresh, move, read_text, undo
from study.records.store import ExperimentStore
from tests.unit.records.network_disk import Machine
from tests.unit.records.test_store import attempt, record


def test_the_double_remembers_what_it_saw_until_it_opens(tmp_path: Path) -> None:
    here = Machine()
    with here.at_work():
        assert not (tmp_path / "file").exists()
    (tmp_path / "file").write_text("there")
    with here.at_work():
        assert not (tmp_path / "file").exists()
        assert read_text(tmp_path / "file") is None
        look_afresh(tmp_path)
        assert read_text(tmp_path / "file") == "there"


def test_a_record_of_another_machine_is_seen_at_once(tmp_path: Path) -> None:
    store, here = ExperimentStore(tmp_path), Machine()
    path = attempt(store, "one")
    with here.at_work():
        assert store.record("full", "abc") is None
    assert ExperimentStore(tmp_path).publish(record(), path)
    with here.at_work():
        assert store.record("full", "abc") == record()


def test_a_run_that_began_elsewhere_is_not_trained_again(tmp_path: Path) -> None:
    store, here = ExperimentStore(tmp_path), Machine()
    with here.at_work():
        assert store.finished_attempt("full", "abc") is None
        assert not store.run_dir("full", "abc").exists()
        assert not (tmp_path / "full").exists()
    (attempt(store, "one") / "result.json").write_text("{}")  # and its worker dies
    with here.at_work():
        found = store.finished_attempt("full", "abc")
        assert found is not None and store.publish(record(), found)
    assert (store.run_dir("full", "abc") / "metrics.jsonl").read_text() == "one"


def test_attempts_that_another_machine_noted_are_kept(tmp_path: Path) -> None:
    store, here = ExperimentStore(tmp_path), Machine()
    store.new_attempt("full", "abc")
    with here.at_work():
        assert store.attempts("full", "abc") == []
    store.append_attempt("full", "abc", 1, "failed", "boom")
    with here.at_work():
        assert store.new_attempt("full", "abc").name == "2"
        store.append_attempt("full", "abc", 2, "oom", "too large")
    assert [line["status"] for line in store.attempts("full", "abc")] == ["failed", "oom"]


def test_a_plan_that_another_machine_grew_is_noticed_under_the_lock(tmp_path: Path) -> None:
    store, here = ExperimentStore(tmp_path), Machine()
    store.write_plan({"runs": [1]})
    with here.at_work():
        seen = store.plan_stamp()
        assert store.plan_path.stat() and store.read_selections() == {}
    store.write_plan({"runs": [1, 2]})
    store.write_selection("full", {"learning_rate": 1e-4})
    with here.at_work(), store.lock():
        assert store.plan_stamp() != seen
        assert store.read_plan() == {"runs": [1, 2]}
        assert store.read_selections() == {"full": {"learning_rate": 1e-4}}


def test_the_second_writer_changes_nothing_though_it_sees_no_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = ExperimentStore(tmp_path)
    first, second = attempt(store, "one"), attempt(store, "two")
    (second / "samples.jsonl").write_text("of the second alone")
    assert store.publish(record(score_final=0.5), first)
    exists = Path.exists
    with monkeypatch.context() as patch:  # a mount that never looks afresh
        looked: list[Path] = []

        def blind(path: Path, **how: Any) -> bool:
            looked.append(path)
            return exists(path, **how) and not (path.name == "record.json" and path not in seen)

        seen: set[Path] = set()
        link = os.link

        def link_and_see(source: Path, target: Path) -> None:
            seen.add(target)  # making a name asks the server
            link(source, target)

        patch.setattr(Path, "exists", blind)
        patch.setattr(os, "link", link_and_see)
        assert not store.publish(record(score_final=0.9), second)
    run_dir = store.run_dir("full", "abc")
    assert run_dir / "record.json" in looked
    assert store.record("full", "abc") == record(score_final=0.5)
    assert (run_dir / "metrics.jsonl").read_text() == "one"
    assert (run_dir / "adapter" / "weights").read_text() == "one"
    assert not (run_dir / "samples.jsonl").exists()
    assert list((run_dir / "attempts").iterdir()) == []


@pytest.mark.parametrize("code", [errno.EEXIST, errno.EIO])
def test_a_link_whose_answer_was_lost_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    store, link = ExperimentStore(tmp_path), os.link

    def answer_lost(source: Path, target: Path) -> None:
        link(source, target)
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "link", answer_lost)
    assert store.publish(record(), attempt(store, "one"))
    assert (store.run_dir("full", "abc") / "metrics.jsonl").read_text() == "one"


def test_a_link_that_was_not_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "source").write_text("")
    with pytest.raises(FileNotFoundError):
        link_first(tmp_path / "source", tmp_path / "nowhere" / "target")
    assert link_first(tmp_path / "source", tmp_path / "target")
    (tmp_path / "other").write_text("")
    assert not link_first(tmp_path / "other", tmp_path / "target")


@pytest.mark.parametrize(("times", "text"), [(1, "new"), (READS - 1, "new"), (READS, None)])
def test_a_file_that_is_replaced_while_it_is_read_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: int, text: str | None
) -> None:
    (tmp_path / "file").write_text("new")
    stale, read = iter(range(times)), Path.read_text

    def read_or_stale(path: Path, *how: Any) -> str:
        if next(stale, None) is not None:
            raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))
        return read(path, *how)

    monkeypatch.setattr(Path, "read_text", read_or_stale)
    assert read_text(tmp_path / "file") == text


def test_what_is_no_matter_of_other_machines_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert read_text(tmp_path / "file" / "below") is None
    with pytest.raises(IsADirectoryError):
        read_text(tmp_path)


def test_plans_and_selections_are_on_the_disk_before_they_have_their_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, done = ExperimentStore(tmp_path), []
    sync, replace = os.fsync, os.replace

    def note_sync(descriptor: int) -> None:
        done.append(("sync", os.fstat(descriptor).st_ino, os.fstat(descriptor).st_size > 0))
        sync(descriptor)

    def note_replace(source: Path, target: Path) -> None:
        done.append(("name", os.stat(source).st_ino, True))
        replace(source, target)

    monkeypatch.setattr(os, "fsync", note_sync)
    monkeypatch.setattr(os, "replace", note_replace)
    store.write_plan({"runs": []})
    store.write_selection("full", {"learning_rate": 1e-4})
    plan = store.plan_path.stat().st_ino
    selection = (tmp_path / "selection" / "full.json").stat().st_ino
    assert done == [
        ("sync", plan, True), ("name", plan, True),
        ("sync", selection, True), ("name", selection, True),
    ]  # fmt: skip


@pytest.mark.parametrize("winner", ["a", "b"])
def test_who_was_first_keeps_its_files_where_the_disk_keeps_no_lock(
    tmp_path: Path, winner: str
) -> None:
    run, names = tmp_path / "run", ("metrics.jsonl", "adapter")
    run.mkdir()
    for who in "ab":
        (tmp_path / who / "adapter").mkdir(parents=True)
        (tmp_path / who / "adapter" / "w").write_text(who)
        (tmp_path / who / "metrics.jsonl").write_text(who)
    moves = {who: move(names, tmp_path / who, run) for who in "ab"}
    loser = "ab".replace(winner, "")
    if winner == "b":
        shutil.rmtree(tmp_path / "b")  # it has published and dropped its attempt
    undo(moves[loser])
    assert (run / "metrics.jsonl").read_text() == (run / "adapter" / "w").read_text() == winner
