"""The secret that the lab service and its workers share, from the environment or from a file that the lab writes."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from pathlib import Path

from clientlab.errors import LabError

TOKEN = "CLIENTLAB_TOKEN"  # noqa: S105 - the variable's name
TOKEN_FILE = "CLIENTLAB_TOKEN_FILE"  # noqa: S105 - likewise


def read_token(environment: Mapping[str, str]) -> str:
    """Return the token, or an empty string if none is set. Raises LabError if its file can't be read."""
    path = environment.get(TOKEN_FILE)
    if environment.get(TOKEN) or not path:
        return environment.get(TOKEN, "")
    try:
        secret = Path(path).read_text(encoding="ascii").strip()
    except OSError as error:
        raise LabError(f"{TOKEN_FILE}={path}: {error.strerror}; the lab writes it when it starts") from error
    if not secret:  # without a token, the lab would trust everybody
        raise LabError(f"{TOKEN_FILE}={path}: the file is empty; remove it, and the lab writes a new one")
    return secret


def keep_token(environment: Mapping[str, str]) -> str:
    """Return the token of the lab. A missing file is written with a new one. Raises LabError if it can't be."""
    path = environment.get(TOKEN_FILE)
    if not environment.get(TOKEN) and path and not Path(path).exists():
        try:
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="ascii") as file:
                file.write(secrets.token_urlsafe(32))
        except OSError as error:
            raise LabError(f"{TOKEN_FILE}={path}: {error.strerror}; name a folder that can be written") from error
    return read_token(environment)
