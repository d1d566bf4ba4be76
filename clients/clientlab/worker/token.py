"""The secret that the lab service and its workers share, from the environment or from a file that the lab writes."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from pathlib import Path

from clientlab.errors import LabError

TOKEN = "CLIENTLAB_TOKEN"  # noqa: S105 - the variable's name
TOKEN_FILE = "CLIENTLAB_TOKEN_FILE"  # noqa: S105 - likewise
_BYTES = 32


def read_token(environment: Mapping[str, str]) -> str:
    """The token of a worker; empty where none is set. Raises LabError for a file that is empty or can't be read."""
    path = environment.get(TOKEN_FILE)
    if environment.get(TOKEN) or not path:
        return environment.get(TOKEN, "")
    try:
        token = Path(path).read_text(encoding="ascii").strip()
    except (OSError, UnicodeError) as error:
        raise LabError(f"{TOKEN_FILE}={path}: {error}; the lab writes it when it starts") from error
    if not token:  # without a token, the lab would trust everybody
        raise LabError(f"{TOKEN_FILE}={path}: the file is empty; remove it, and the lab writes a new token")
    return token


def keep_token(environment: Mapping[str, str]) -> str:
    """The token of the lab: as for a worker, but a file that is not there is written, with a new one.

    Raises LabError where it can't be.
    """
    path = environment.get(TOKEN_FILE)
    if environment.get(TOKEN) or not path:
        return environment.get(TOKEN, "")
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
            file.write(secrets.token_urlsafe(_BYTES))
    except FileExistsError:
        pass  # of an earlier start: the workers may have read it
    except OSError as error:
        raise LabError(f"{TOKEN_FILE}={path}: {error.strerror}; name a folder that can be written") from error
    return read_token(environment)
