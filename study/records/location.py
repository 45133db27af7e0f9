"""Where an experiment's Optuna storage is, said without its password."""

from __future__ import annotations

import re
from urllib.parse import unquote, unquote_plus

SECRET_KEYS = ("password", "passfile", "sslpassword")
"""Parameters of a URL's query that libpq reads secrets from."""
ENVIRONMENT = "PGPASSWORD, ~/.pgpass or storage='${oc.env:NAME}'"
USER_INFO = re.compile(r"(?P<user>[^:/@]*)(:(?P<password>[^@]*(@[^/?#]*(?=@))?))?@")
"""What stands before the host: as SQLAlchemy reads it, and on to a later ``@`` of the host."""
HOSTS = re.compile(r"(\[[^][/@]*\]|[^][:/@]*)(:\d*)?")
PIECES = re.compile(r"[&;]")
"""What parts the parameters of a query."""
INTERPOLATION = re.compile(r":?\$\{[^{}]*\}")
URL_IN_TEXT = re.compile(r"[A-Za-z][\w+.-]*:/[^\s'\"]+")


def without_password(url: str) -> str:
    """The URL with its password left out; of a text that cannot be parsed, the scheme alone."""
    scheme, _, rest = url.partition(":")
    if scheme in ("journal", "sqlite") and not re.match(r"//[^/]|.*://", rest):
        return url  # a file: its name is kept to the letter
    if not rest.startswith("//"):
        return _scheme(url)
    place, mark, query = rest[2:], "", ""
    found = USER_INFO.match(place)
    user = f"{found['user']}@" if found else ""
    place, mark, query = place[found.end() if found else 0 :].partition("?")
    kept = "&".join(piece for piece in PIECES.split(query) if not _is_secret(piece))
    shown = f"{place}{mark if kept else ''}{kept}"
    sound = all(HOSTS.fullmatch(host) for host in place.partition("/")[0].split(","))
    return f"{scheme}://{user}{shown}" if sound and "@" not in shown else _scheme(url)


def has_password(url: str) -> bool:
    """Whether the URL itself names a password; an interpolation like ``${oc.env:NAME}`` does not,
    whatever it stands for.
    """
    own = INTERPOLATION.sub("", url)
    return bool(own) and without_password(own) != own


def scrubbed(text: str, url: str) -> str:
    """A text, such as a driver's error, without the passwords of ``url``."""
    found = USER_INFO.match(url.partition("//")[2])
    secrets = [(found and found["password"]) or ""]
    pieces = PIECES.split(url.partition("?")[2])
    secrets += [piece.partition("=")[2] for piece in pieces if _is_secret(piece)]
    spelled = {form for s in secrets for form in (s, unquote(s), unquote_plus(s)) if form}
    for secret in sorted(spelled, key=len, reverse=True):
        text = text.replace(secret, "***")
    return text


def without_passwords(text: str) -> str:
    """A text with the password left out of every URL in it."""
    return URL_IN_TEXT.sub(lambda url: without_password(url.group()), text)


def check_storage(url: str, workers: int) -> None:
    """Refuse storages that several workers would break, or that were never tried.

    Raises:
        ValueError: naming the URL without its password.
    """
    place = without_password(url)
    if url.startswith("sqlite:///"):
        if workers > 1:
            raise ValueError(
                "a SQLite storage takes workers=1, since SQLite locks the whole file and breaks on "
                f"network disks, got workers={workers} with storage={place}; leave storage= out "
                "(a journal file) or name a PostgreSQL server"
            )
        return
    if url.startswith("postgres://"):
        raise ValueError(f"storage must begin with postgresql://, not postgres://, got {place!r}")
    if re.match(r"postgresql(\+psycopg)?://[^/]*/[^/]+", url) is None:
        raise ValueError(
            "storage must be null (a journal file), sqlite:///FILE or "
            f"postgresql://USER@HOST/DATABASE, got {place!r}"
        )


def sqlalchemy_url(url: str) -> str:
    """The URL as SQLAlchemy wants it: PostgreSQL through psycopg 3."""
    return re.sub(r"^postgresql://", "postgresql+psycopg://", url)


def _is_secret(piece: str) -> bool:
    return unquote_plus(piece.partition("=")[0]).lower() in SECRET_KEYS


def _scheme(url: str) -> str:
    found = re.match(r"[A-Za-z][\w+.-]*(?=:)", url)
    return f"{found.group()}:..." if found else "..."
