"""Finding a secret wherever a sweep or a report may have left it."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, quote_plus

PASSWORD = "hunter2/@ '\"€:pass"
"""Has every character that a URL, a shell, JSON or a regular expression treats otherwise."""
API_KEY = "0123456789abcdef0123456789abcdef01234567"


def forms(secret: str) -> set[bytes]:
    """The secret as it may stand in a text, a URL, JSON or a header."""
    texts = {secret, quote(secret), quote(secret, safe=""), quote_plus(secret)}
    texts |= {json.dumps(secret)[1:-1], repr(secret)[1:-1]}
    encoded = {text.encode() for text in texts}
    return encoded | {base64.b64encode(secret.encode()).rstrip(b"=")}


def is_in(secret: str, content: bytes) -> bool:
    """Whether the secret stands in a file or an output, in any of its forms."""
    return any(form in content for form in forms(secret))


def leaks(root: Path, *secrets: str) -> Iterator[str]:
    """Files below a directory, names included, in which one of the secrets is."""
    for path in sorted(root.rglob("*")):
        content = str(path).encode()
        if path.is_file() and not path.is_symlink():
            content += path.read_bytes()
        if any(is_in(secret, content) for secret in secrets):
            yield str(path)
