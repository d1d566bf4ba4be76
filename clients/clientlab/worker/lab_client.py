"""Talking to the lab service over HTTP. Nothing but the standard library: a waiting worker is to be small."""

from __future__ import annotations

import contextlib
import http.client
import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from clientlab.errors import LabError


def log(message: str) -> None:
    """Write one line; line breaks inside `message` become spaces."""
    print(f"clientlab work: {' '.join(message.split())}", file=sys.stderr, flush=True)  # noqa: T201


_PAUSE = 0.5
_TIMEOUT = 10.0
_PROMPT = 2.0
POLL_TIMEOUT = 40.0
"""Seconds, longer than the lab keeps a request waiting."""
_CONNECT_TIMEOUT = 5.0

LOST_ERRORS = (OSError, http.client.HTTPException)
"""What a lab that is away looks like; it may come back."""


class Refused(Exception):
    """The lab has understood and will not: asking again changes nothing. The text is the lab's own line."""


class WrongToken(LabError):
    """The lab does not know this worker's token."""


@dataclass(frozen=True)
class LabClient:
    """A lab service. Raises LabError from `split` for a URL that can't be one."""

    url: str
    token: str

    def split(self) -> tuple[str, int]:
        """Host and port."""
        try:
            parts = urlsplit(self.url)
            port = parts.port or 80
        except ValueError as error:
            raise LabError(f"LAB_URL {self.url!r}: {error}; correct the URL") from error
        if parts.scheme != "http" or not parts.hostname:
            raise LabError(f"LAB_URL {self.url!r}: write it as http://lab:8000")
        return parts.hostname, port

    def post(self, path: str, document: dict[str, Any], timeout: float = _TIMEOUT) -> dict[str, Any] | None:
        """The answer to a document; None where there is none. Raises one of LOST_ERRORS, Refused or WrongToken."""
        with self._connection(timeout) as connection:
            return self._answer(connection, path, json.dumps(document), {"Connection": "close"})

    @contextlib.contextmanager
    def connected(self) -> Iterator[Callable[[str], dict[str, Any]]]:
        """Keep a connection. The function posts to a path, without a document, and returns the answer.

        It raises as `post` does.
        """
        with self._connection(_PROMPT) as connection:
            yield lambda path: self._answer(connection, path, None, {}) or {}

    @contextlib.contextmanager
    def _connection(self, timeout: float) -> Iterator[http.client.HTTPConnection]:
        host, port = self.split()
        made = http.client.HTTPConnection(host, port, timeout=min(timeout, _CONNECT_TIMEOUT))
        with contextlib.closing(made) as connection:
            connection.connect()
            connection.sock.settimeout(timeout)
            yield connection

    def _answer(
        self, connection: http.client.HTTPConnection, path: str, document: str | None, more: dict[str, str]
    ) -> dict[str, Any] | None:
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self.token}", **more}
        connection.request("POST", path, document, headers)
        response = connection.getresponse()
        return _understood(response.status, response.read())

    def insist(self, path: str, document: dict[str, Any], timeout: float = _TIMEOUT) -> dict[str, Any] | None:
        """`post` until the lab answers, and log the first failure. Raises Refused or WrongToken."""
        is_away = False
        while True:
            try:
                return self.post(path, document, timeout)
            except LOST_ERRORS as error:
                if not is_away:
                    log(f"the lab is away: {error}")
                is_away = True
                time.sleep(_PAUSE)


def _understood(status: int, content: bytes) -> dict[str, Any] | None:
    if status == http.HTTPStatus.NO_CONTENT:
        return None
    try:
        document: Any = json.loads(content)
    except ValueError as error:
        raise http.client.HTTPException(f"answered {status} with what is no JSON") from error
    if status == http.HTTPStatus.OK and isinstance(document, dict):
        return document
    line = document.get("error") if isinstance(document, dict) else None
    if status == http.HTTPStatus.UNAUTHORIZED:
        raise WrongToken(f"the lab answered 401: {line}")
    if 400 <= status < 500:
        raise Refused(f"the lab answered {status}: {line}")
    raise http.client.HTTPException(f"answered {status}: {line}")
