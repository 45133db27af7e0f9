"""Optuna Dashboard on a sweep: what it shows, and that nothing can be changed through it."""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import optuna
import pytest
from filelock import FileLock

from study.config import SeedsConfig
from study.dashboard.__main__ import is_loopback, main, make_dashboard, view_of
from study.dashboard.view import JOINT_ID, ReadOnlyView
from study.records.store import ExperimentStore
from study.sweep.claims.claims import Claims
from study.sweep.claims.storage import Storage
from study.sweep.schedule import read_plan, read_state, write_plan
from tests.unit.sweep.workers import drain, prepared


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> ExperimentStore:
    """Two arms, three rates, two search seeds of which one fails; no report run can follow."""
    path = tmp_path_factory.mktemp("dashboard") / "toy"
    store = prepared(path, seeds=SeedsConfig(search=[0, 13], report=[100]))
    plan = read_plan(store)
    write_plan(store, Claims(store, Storage(store), plan.experiment.name), plan)
    drain(store)
    return store


@contextmanager
def served(store: ExperimentStore, host: str = "127.0.0.1") -> Iterator[str]:
    server = make_dashboard(view_of(store), host, 0)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture(scope="module")
def url(store: ExperimentStore) -> Iterator[str]:
    with served(store) as url:
        yield url


def asked(url: str, method: str = "GET", **headers: str) -> tuple[int, Any]:
    data = b"{}" if method in ("POST", "PUT") else None
    headers |= {"Content-Type": "application/json"}
    request = urllib.request.Request(url, data=data, method=method, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=20) as response:
            return response.status, json.loads(response.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


def test_arms_and_phases_are_studies_and_the_plan_is_none(url: str) -> None:
    code, content = asked(f"{url}/api/studies")
    assert code == 200
    assert [study["study_name"] for study in content["study_summaries"]] == [
        "toy/full/search", "toy/lora-r1/search", "toy (search of all arms)",
    ]  # fmt: skip
    attributes = {a["key"]: a["value"] for a in content["study_summaries"][1]["user_attrs"]}
    assert attributes["arm"] == "lora-r1" and attributes["phase"] == "search"
    assert json.loads(attributes["factors"])["method.name"] == "lora"


def test_trials_show_status_reason_seed_and_run(url: str, store: ExperimentStore) -> None:
    _, content = asked(f"{url}/api/studies/0")
    trials = content["trials"]
    shown = [{a["key"]: json.loads(a["value"]) if a["value"][:1] in '"{[' else a["value"]
              for a in trial["user_attrs"]} for trial in trials]  # fmt: skip
    done = [a for a, t in zip(shown, trials, strict=True) if t["state"] == "Complete"]
    records = read_state(store).records
    assert {a["run_id"] for a in done} == {k for k, r in records.items() if r.arm == "full"}
    assert {a["status"] for a in done} == {"completed"}
    assert {a["status_reason"] for a in done} == {"double"}
    failed = [a for a, t in zip(shown, trials, strict=True) if t["state"] == "Fail"]
    assert len(failed) == 3 and {a["status"] for a in failed} == {"failed"}
    assert all("13 always fails" in a["status_reason"] for a in failed)
    assert not any("record" in a or "lease" in a for a in shown)


def test_the_joint_search_has_the_factors_as_parameters(url: str, store: ExperimentStore) -> None:
    _, content = asked(f"{url}/api/studies/{JOINT_ID}")
    complete = [t for t in content["trials"] if t["state"] == "Complete"]
    assert len(complete) == 6 and content["objective_names"] == ["held-out accuracy"]
    assert {p["name"] for t in complete for p in t["params"]} == {"learning_rate", "method.name"}
    view = view_of(store)
    optuna_study = optuna.load_study(study_name="toy (search of all arms)", storage=view)
    found = {(t.params["method.name"], t.params["learning_rate"]): t.value
             for t in optuna_study.trials if t.value is not None}  # fmt: skip
    records = read_state(store).records.values()
    assert found == {(r.method, r.learning_rate): r.score_final for r in records}
    importances = optuna.importance.get_param_importances(optuna_study)
    assert importances.keys() == {"learning_rate", "method.name"}
    code, _ = asked(f"{url}/api/studies/{JOINT_ID}/param_importances")
    assert code == 200


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("DELETE", "/api/studies/0"), ("POST", "/api/studies"), ("POST", "/api/studies/0/rename"),
        ("PUT", "/api/studies/0/note"), ("POST", "/api/trials/0/tell"),
        ("POST", "/api/trials/0/user-attrs"),
    ],
)  # fmt: skip
def test_nothing_is_changed_from_a_browser(
    url: str, store: ExperimentStore, method: str, path: str
) -> None:
    before = store.journal_path.read_bytes()
    code, content = asked(url + path, method)
    assert code == 403
    assert content["reason"].startswith("the dashboard shows a sweep and changes nothing in it")
    assert store.journal_path.read_bytes() == before


def test_nothing_is_changed_through_the_view(store: ExperimentStore) -> None:
    view = view_of(store)
    state = optuna.trial.TrialState.FAIL
    for act in (
        lambda: view.create_new_study([optuna.study.StudyDirection.MAXIMIZE], "x"),
        lambda: view.create_new_trial(0), lambda: view.delete_study(0),
        lambda: view.set_study_user_attr(0, "a", 1), lambda: view.set_study_system_attr(0, "a", 1),
        lambda: view.set_trial_state_values(0, state), lambda: view.set_trial_user_attr(0, "a", 1),
        lambda: view.set_trial_intermediate_value(0, 1, 0.5),
        lambda: view.set_trial_system_attr(0, "a", 1),
    ):  # fmt: skip
        with pytest.raises(PermissionError, match="changes nothing in it"):
            act()


def test_opening_neither_waits_for_a_writer_nor_writes(store: ExperimentStore) -> None:
    before = {p: p.stat().st_mtime_ns for p in store.path.rglob("*")}
    with (
        FileLock(store.journal_path.with_suffix(".lock")),
        FileLock(store.path / "plan.lock"),
        served(store) as url,
    ):
        assert asked(f"{url}/api/studies")[0] == 200
    assert {p: p.stat().st_mtime_ns for p in store.path.rglob("*")} == before


def test_a_line_that_is_being_written_is_left_for_later(
    store: ExperimentStore, tmp_path: Path
) -> None:
    copy = ExperimentStore(tmp_path / "toy")
    copy.write_plan(store.read_plan() or {})
    text = store.journal_path.read_bytes()
    copy.journal_path.write_bytes(text[:-20])  # its end is on its way
    with served(copy) as url:
        assert asked(f"{url}/api/studies/0")[0] == 200
        assert copy.journal_path.read_bytes() == text[:-20]
        copy.journal_path.write_bytes(text)
        view = view_of(copy)
        assert len(view.get_all_trials(JOINT_ID)) == len(view_of(store).get_all_trials(JOINT_ID))
        assert asked(f"{url}/api/studies/1")[0] == 200


def test_a_foreign_page_cannot_read_it_under_a_name_of_its_own(url: str) -> None:
    code, content = asked(f"{url}/api/studies", Host="evil.example:8080")
    assert (code, content["reason"]) == (403, "this dashboard is not called 'evil.example'")
    assert asked(f"{url}/api/studies", Host="localhost:8080")[0] == 200


@pytest.mark.parametrize(
    ("host", "expected"),
    [("127.0.0.1", True), ("localhost", True), ("::1", True), ("0.0.0.0", False), ("a.b", False)],
)
def test_what_only_this_machine_reaches(host: str, expected: bool) -> None:
    assert is_loopback(host) == expected


def test_a_running_trial_shows_its_worker(store: ExperimentStore, tmp_path: Path) -> None:
    running = prepared(tmp_path / "toy")
    plan = read_plan(running)
    claims = Claims(running, Storage(running), plan.experiment.name)
    write_plan(running, claims, plan)
    claims.take(plan.arms, plan.runs)
    view = view_of(running)
    assert isinstance(view, ReadOnlyView)
    (trial,) = view.get_all_trials(JOINT_ID, states=(optuna.trial.TrialState.RUNNING,))
    host, _, pid = trial.user_attrs["worker"].rpartition(":")
    assert host and pid.isdigit() and "lease" not in trial.user_attrs


def test_a_taken_port_is_said_in_a_sentence(
    store: ExperimentStore, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    port = url.rpartition(":")[2]
    with pytest.raises(SystemExit) as left:
        main([str(store.path), "--port", port, "--no-browser"])
    assert left.value.code == 2
    assert capsys.readouterr().err == (
        f"error: cannot listen on 127.0.0.1:{port}: Address already in use\n"
    )


def test_an_experiment_that_was_never_launched_has_no_dashboard(tmp_path: Path) -> None:
    fresh = prepared(tmp_path / "toy")
    with pytest.raises(ValueError, match=r"has no Optuna storage: nothing was launched there yet"):
        view_of(fresh)
