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
    return read_secret(Path(path), f"{TOKEN_FILE}={path}")


def keep_token(environment: Mapping[str, str]) -> str:
    """The token of the lab: as for a worker, but a file that is not there is written, with a new one.

    Raises LabError where it can't be.
    """
    path = environment.get(TOKEN_FILE)
    if not environment.get(TOKEN) and path:
        write_secret(Path(path), f"{TOKEN_FILE}={path}")
    return read_token(environment)


def write_secret(path: Path, what: str) -> None:
    """Write a new secret to a file that only its owner can read. A file that is there stays: others may have read it.

    Raises LabError, which names the file as `what`.
    """
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
            file.write(secrets.token_urlsafe(_BYTES))
    except FileExistsError:
        pass
    except OSError as error:
        raise LabError(f"{what}: {error.strerror}; name a folder that can be written") from error


def read_secret(path: Path, what: str) -> str:
    """The secret of a file. Raises LabError for a file that is empty or can't be read."""
    try:
        secret = path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeError) as error:
        raise LabError(f"{what}: {error}; the lab writes it when it starts") from error
    if not secret:  # without a token, the lab would trust everybody
        raise LabError(f"{what}: the file is empty; remove it, and the lab writes a new one")
    return secret
