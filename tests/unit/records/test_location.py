"""A URL is shown without its password, however it is written."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from study.records.location import (
    check_storage,
    has_password,
    scrubbed,
    sqlalchemy_url,
    without_password,
    without_passwords,
)

SECRET = "hunter2"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://u:hunter2@h/db", "postgresql://u@h/db"),
        ("postgresql+psycopg://u:hunter2@h:5432/db", "postgresql+psycopg://u@h:5432/db"),
        ("postgresql://u:hunter2%40x@h/db", "postgresql://u@h/db"),
        ("postgresql://u:x@hunter2@h/db", "postgresql://u@h/db"),
        ("postgresql://u:x/hunter2@h/db", "postgresql://u@h/db"),
        ("postgresql://u:x?hunter2@h/db", "postgresql://u@h/db"),
        ("postgresql://u:x#hunter2@h/db", "postgresql://u@h/db"),
        ("postgresql://u:x?password=hunter2@h/db", "postgresql://u@h/db"),
        ("postgresql://:hunter2@h/db", "postgresql://@h/db"),
        ("postgresql://u@h/db?password=hunter2", "postgresql://u@h/db"),
        ("postgresql://u@h/db?pass%77ord=hunter2", "postgresql://u@h/db"),
        ("postgresql://u@h/db?sslmode=require&PASSWORD=x@hunter2&target_session_attrs=any",
         "postgresql://u@h/db?sslmode=require&target_session_attrs=any"),
        ("postgresql://u@h/db?sslpassword=hunter2", "postgresql://u@h/db"),
        ("postgresql://u:hunter2@h1:5432,h2:5433/db", "postgresql://u@h1:5432,h2:5433/db"),
        ("postgresql://u:hunter2@[::1]:5432/db", "postgresql://u@[::1]:5432/db"),
        ("postgresql://u:x@y/hunter2@h/db", "postgresql:..."),
        ("postgresql://u:hunter2", "postgresql:..."),  # hunter2 is no port
        ("postgresql://u@h:hunter2/db", "postgresql:..."),
        ("postgresql:/u:hunter2@h/db", "postgresql:..."),
        ("postgresql:u:hunter2@h/db", "postgresql:..."),
        ("postgresql//u:hunter2@h/db", "..."),
        ("journal:postgresql://u:hunter2@h/db", "journal:..."),
        ("hunter2", "..."),
    ],
)  # fmt: skip
def test_a_password_is_left_out(url: str, shown: str) -> None:
    assert without_password(url) == shown
    assert has_password(url)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u@h/db",
        "postgresql://h/db?sslmode=verify-full&options=-c%20statement_timeout%3D5min",
        "postgresql://u@/db?host=/var/run/postgresql",
        "sqlite:///a@b.db",
        "sqlite:////abs/a:b.db",
        "journal:runs/x/optuna.journal",
        "journal:/abs/a:b@c",
    ],
)
def test_a_url_without_a_password_is_kept_to_the_letter(url: str) -> None:
    assert without_password(url) == url
    assert not has_password(url)


@pytest.mark.parametrize(
    ("url", "named"),
    [
        ("${oc.env:STORAGE_URL}", False),
        ("postgresql://u:${oc.env:PASSWORD}@h/db", False),
        ("${oc.env:SCHEME}://u:hunter2@h/db", True),
        ("postgresql://u:hunter2@${oc.env:HOST}/db", True),
        ("", False),
    ],
)
def test_an_interpolation_names_no_password(url: str, named: bool) -> None:
    assert has_password(url) is named


@given(password=st.text(min_size=1).map(lambda text: f"{text}hunter2{text}"))
def test_no_password_is_shown_whatever_its_characters(password: str) -> None:
    for url in (
        f"postgresql://u:{password}@h/db",
        f"postgresql://u@h/db?password={password}",
        f"postgresql://u:{password}@h/db?sslmode=require",
    ):
        shown = without_password(url)
        # After & or ; a query goes on with another parameter, which no driver takes for a password.
        if "password=" not in url or not set("&;") & set(password):
            assert SECRET not in shown, url


@given(st.text())
def test_any_text_can_be_shown(text: str) -> None:
    assert without_password(f"postgresql://{text}").startswith("postgresql:")


def test_a_drivers_words_are_cleared_of_the_password() -> None:
    url = "postgresql://u:a%2Fhunter2@h/db?sslpassword=other%20one"
    said = 'connection to "a/hunter2" failed, a%2Fhunter2, other one, other%20one'
    assert scrubbed(said, url) == 'connection to "***" failed, ***, ***, ***'
    assert scrubbed("nothing to hide", "postgresql://u@h/db") == "nothing to hide"


def test_urls_inside_a_text_are_cleared() -> None:
    said = "unrecognized arguments: postgresql://u:hunter2@h/db 'sqlite:///x.db'"
    shown = "unrecognized arguments: postgresql://u@h/db 'sqlite:///x.db'"
    assert without_passwords(said) == shown


def test_postgresql_goes_through_psycopg_3() -> None:
    assert sqlalchemy_url("postgresql://u@h/db") == "postgresql+psycopg://u@h/db"
    assert sqlalchemy_url("postgresql+psycopg://u@h/db") == "postgresql+psycopg://u@h/db"
    assert sqlalchemy_url("sqlite:///x.db") == "sqlite:///x.db"


@pytest.mark.parametrize(
    ("url", "workers", "rule"),
    [
        ("sqlite:///x.db", 2, "a SQLite storage takes workers=1, since SQLite locks the whole"),
        ("postgres://u@h/db", 1, "must begin with postgresql://, not postgres://"),
        ("mysql://u:secret@h/db", 1, "got 'mysql://u@h/db'"),
        ("postgresql://u@h", 1, "must be null"),
        ("x.db", 1, "must be null"),
    ],
)
def test_storages_that_workers_would_break_are_refused(url: str, workers: int, rule: str) -> None:
    with pytest.raises(ValueError, match=re.escape(rule)) as refused:
        check_storage(url, workers)
    assert "secret" not in str(refused.value)


def test_storages_that_were_tried_are_taken() -> None:
    check_storage("sqlite:///x.db", 1)
    check_storage("postgresql://u@h/db", 8)
    check_storage("postgresql://u@/db?host=/tmp", 8)
