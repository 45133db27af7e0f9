"""Passwords of storages and keys of services reach no output, file or error text.

``# Reports``: what reads a storage. ``# Sweeps``: what writes ``runs/`` and the storage.
"""

from __future__ import annotations

import os
import subprocess
import sys
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import optuna
import psycopg
import pytest
from psycopg import sql

import analysis
from analysis.__main__ import main
from analysis.claims import check_claims
from analysis.reading.load import load
from tests.cluster.postgres import Server, private_server
from tests.doubles import write_synthetic_experiment
from tests.faults.secrets import API_KEY, PASSWORD, forms, is_in, leaks
from tests.storages import store_experiment

ENCODED = quote(PASSWORD, safe="")


@dataclass(frozen=True)
class Guarded:
    """A database that asks for a password."""

    server: Server

    def url(self, user: str = "sweeper", password: str = ENCODED, database: str = "sweeps") -> str:
        return f"postgresql://{user}:{password}@/{database}?host={self.server.sockets}"


@pytest.fixture(scope="module")
def guarded() -> Iterator[Guarded]:
    with private_server() as server:
        with psycopg.connect(server.url, autocommit=True) as connection:
            for role in ("sweeper", "reader"):
                statement = sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}")
                connection.execute(statement.format(sql.Identifier(role), sql.Literal(PASSWORD)))
            connection.execute("CREATE DATABASE sweeps OWNER sweeper")
            rules = "local all postgres trust\nlocal all all scram-sha-256\n"
            (server.data / "pg_hba.conf").write_text(rules)
            connection.execute("SELECT pg_reload_conf()")
        yield Guarded(server)


@pytest.fixture(scope="module")
def stored(guarded: Guarded, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of the experiment that is in the database."""
    directory = write_synthetic_experiment(tmp_path_factory.mktemp("runs") / "ex")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    store_experiment(directory, guarded.url())
    return directory


# Reports ----------------------------------------------------------------------------------------


@pytest.mark.cluster
@pytest.mark.timeout(180)
def test_reports_from_a_storage_keep_its_password(
    guarded: Guarded,
    stored: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WANDB_API_KEY", API_KEY)
    url = guarded.url()
    for code, arguments in (
        (0, ["report", url]),
        (0, ["claims", url, "--json"]),
        (0, ["export", url, "--format", "csv"]),
        (0, ["export", url]),
        (0, ["recommend", url, "--method", "lora", "--rank", "8", "--json"]),
        (0, ["recommend", url, "--method", "lora", "--rank", "8"]),
        (2, ["import", url, "--out", "theirs"]),
        (2, ["compare", url, url]),
        (2, ["claims", url, "--experiment", "no"]),
    ):
        assert main(arguments) == code
        said = "".join(capfd.readouterr()).encode()
        assert not any(is_in(secret, said) for secret in (PASSWORD, API_KEY)), arguments
    assert list(leaks(tmp_path, PASSWORD, API_KEY)) == []
    shown = f"postgresql://sweeper@/sweeps?host={guarded.server.sockets}"
    assert shown in (tmp_path / "ex-report" / "index.html").read_text()


@pytest.mark.cluster
def test_a_report_needs_no_right_but_to_read(
    guarded: Guarded, stored: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The password comes from the environment here, as libpq reads it."""
    with psycopg.connect(guarded.server.url, dbname="sweeps", autocommit=True) as connection:
        connection.execute("GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader")
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    url = f"postgresql://reader@/sweeps?host={guarded.server.sockets}"

    assert check_claims(load(url)) == check_claims(load(stored))


@pytest.mark.cluster
def test_a_database_without_a_sweep_stays_without(
    guarded: Guarded, capsys: pytest.CaptureFixture[str]
) -> None:
    with psycopg.connect(guarded.server.url, autocommit=True) as connection:
        connection.execute("CREATE DATABASE empty OWNER sweeper")
    assert main(["claims", guarded.url(database="empty")]) == 2
    said = capsys.readouterr().err
    assert "cannot be read as an Optuna storage" in said and said.count("\n") == 1
    with psycopg.connect(guarded.server.url, dbname="empty") as connection:
        tables = connection.execute(
            "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"
        ).fetchone()
    assert tables == (0,)


@pytest.mark.cluster
@pytest.mark.parametrize("verb", ["claims", "import"])
def test_a_refused_login_says_why_and_no_password(
    guarded: Guarded, verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = quote(f"{PASSWORD}!", safe="")
    out = ["--out", str(tmp_path / "out")] if verb == "import" else []
    for url, why in (
        (guarded.url(password=wrong), 'password authentication failed for user "sweeper"'),
        (guarded.url(user="nobody"), 'password authentication failed for user "nobody"'),
        (guarded.url(database="none"), 'database "none" does not exist'),
    ):
        assert main([verb, url, *out]) == 2
        said = capsys.readouterr().err
        assert why in said and said.count("\n") == 1
        assert not is_in(PASSWORD, said.encode())


UNUSABLE = [
    f"postgresql://u:{ENCODED}@127.0.0.1:1/db",
    f"postgresql://u:{ENCODED}@no-such-host.invalid/db",
    f"postgresql://u@127.0.0.1:1/db?password={ENCODED}",
    f"postgresql://u:{ENCODED}@127.0.0.1:port/db",
    f"postgresql://u:{PASSWORD}@127.0.0.1:1/db",
    f"postgresql://u:{ENCODED}",
    f"postgresql:/u:{ENCODED}@h/db",
    f"postgresql://u:{ENCODED}@127.0.0.1:1/db?no_such_option=1",
    f"postgresql://u:{ENCODED}@127.0.0.1:1/db?sslmode=none&password={ENCODED}",
    f"postgresql+asyncpg://u:{ENCODED}@h/db",
    f"postgresql+no_such_driver://u:{ENCODED}@h/db",
    f"mysql://u:{ENCODED}@127.0.0.1:1/db",
    f"nosuch://u:{ENCODED}@h/db",
    f"https://u:{ENCODED}@h/db",
    f"journal:postgresql://u:{ENCODED}@h/db",
]


@pytest.mark.parametrize("url", UNUSABLE)
@pytest.mark.parametrize("verb", ["claims", "import"])
def test_a_storage_that_cannot_be_used_is_one_sentence_without_its_password(
    url: str, verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = ["--out", str(tmp_path / "out")] if verb == "import" else []
    assert main([verb, url, *out]) == 2
    said = capsys.readouterr()
    assert said.err.startswith("error: ") and said.err.count("\n") == 1
    assert not is_in(PASSWORD, (said.out + said.err).encode())


@pytest.mark.parametrize("url", UNUSABLE)
def test_no_traceback_of_a_notebook_shows_the_password(url: str) -> None:
    """A notebook shows the whole chain of causes."""
    with pytest.raises(ValueError) as caught:
        analysis.load(url)
    shown = "".join(traceback.format_exception(caught.value))
    # The lines of source that a traceback quotes hold no value of a variable.
    assert not is_in(PASSWORD, shown.encode())
    assert not is_in(PASSWORD, repr(caught.value).encode())


@pytest.mark.parametrize(
    "arguments",
    [
        ["report", "runs/x", "{url}"],
        ["{url}"],
        ["report", "--{url}", "x"],
        ["export", "{url}", "--format", "{url}"],
        ["recommend", "{url}", "--method", "{url}"],
    ],
)
def test_a_command_line_that_is_none_is_quoted_without_the_password(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    url = f"postgresql://u:{ENCODED}@h/db"
    with pytest.raises(SystemExit):
        main([argument.format(url=url) for argument in arguments])
    assert not is_in(PASSWORD, capsys.readouterr().err.encode())


def test_a_missing_driver_is_named_with_its_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)  # as if it were not installed
    assert main(["claims", f"postgresql://u:{ENCODED}@h/db"]) == 2
    assert capsys.readouterr().err == (
        "error: postgresql://u@h/db needs the driver psycopg, which is not installed: "
        "pip install -e '.[postgres]'\n"
    )


def test_the_search_for_secrets_finds_them(tmp_path: Path) -> None:
    assert len(forms(PASSWORD)) >= 5
    for i, form in enumerate(sorted(forms(PASSWORD))):
        (tmp_path / f"{i}").write_bytes(b"before " + form + b" after")
    (tmp_path / "clean").write_text("nothing")
    assert len(list(leaks(tmp_path, PASSWORD))) == len(forms(PASSWORD))


# Sweeps -----------------------------------------------------------------------------------------
SWEEP = (
    "model=lab32",
    "method=lora",
    "objective.learning_rate=1e-3,1e-2",
    "objective.steps=2",
    "evaluation.eval_every=1",
    "evaluation.final_window=1",
    "evaluation.eval_prompts=16",
    "task.train_prompts=64",
    "name=tiny",
    "runs_dir=runs",
    "workers=2",
    "tracker=wandb",
)


def sweep(
    directory: Path, storage: str, environ: dict[str, str], *further: str
) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "study", "-m", *SWEEP, f"storage='{storage}'", *further]
    keys = {"WANDB_API_KEY": API_KEY, **environ}
    return subprocess.run(
        command, cwd=directory, env={**os.environ, **keys}, capture_output=True, check=False
    )


@pytest.mark.cluster
@pytest.mark.timeout(180)
@pytest.mark.parametrize("launcher", ["local", "submitit_local"])
def test_a_sweep_leaves_no_secret_anywhere(tmp_path: Path, guarded: Guarded, launcher: str) -> None:
    environ = {"STORAGE_URL": guarded.url()}
    name = f"name={launcher}"
    done = sweep(tmp_path, "${oc.env:STORAGE_URL}", environ, f"hydra/launcher={launcher}", name)
    (tmp_path / "output").write_bytes(done.stdout + done.stderr)
    assert done.returncode == 0, done.stderr.decode()
    assert len(list(tmp_path.glob("runs/*/*/*/record.json"))) == 2
    assert list(leaks(tmp_path, PASSWORD, API_KEY)) == []
    with psycopg.connect(guarded.server.url, dbname="sweeps") as connection:
        for table in ("studies", "study_user_attributes", "trial_user_attributes"):
            rows = repr(connection.execute(f"SELECT * FROM {table}").fetchall()).encode()
            assert not is_in(PASSWORD, rows) and not is_in(API_KEY, rows)


@pytest.mark.timeout(120)
def test_a_password_that_is_wrong_or_written_out_is_one_sentence(
    tmp_path: Path, guarded: Guarded
) -> None:
    wrong = sweep(
        tmp_path, "${oc.env:STORAGE_URL}", {"STORAGE_URL": guarded.url(password=f"{ENCODED}x")}
    )
    literal = sweep(tmp_path, guarded.url(), {})
    for refused, reason in ((wrong, b"cannot be opened"), (literal, b"must not name a password")):
        assert refused.returncode == 2
        (line,) = [x for x in refused.stderr.splitlines() if x.startswith(b"error: ")]
        assert reason in line
        assert b"Traceback" not in refused.stderr
        assert not is_in(PASSWORD, refused.stdout + refused.stderr)
    assert list(leaks(tmp_path, PASSWORD, API_KEY)) == []
