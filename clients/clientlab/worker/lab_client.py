"""Talking to the lab service over HTTP. Nothing but the standard library: a waiting worker is to be small."""

from __future__ import annotations

import contextlib
import http.client
import json
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from clientlab.errors import LabError

_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 1.0
_TIMEOUT = 10.0
_PROMPT = 2.0
POLL_TIMEOUT = 40.0
"""Seconds, longer than the lab keeps a request waiting."""
_CONNECT_TIMEOUT = 5.0
"""Of a lab that was replaced, a cluster may give the address of the old one: a new connection gets the new one."""

LOST_ERRORS = (OSError, http.client.HTTPException)
"""What a lab that is away looks like; it may come back."""


class Refused(Exception):
    """The lab has understood and will not: asking again changes nothing. The text is the lab's own line."""

    def __init__(self, status: int, line: str) -> None:
        super().__init__(f"the lab answered {status}: {line}")
        self.status = status


class WrongToken(LabError):
    """The lab does not know this worker's token."""


@dataclass(frozen=True)
class LabClient:
    """A lab service. Raises LabError from `split` for a URL that can't be one."""

    url: str
    token: str

    def split(self) -> tuple[str, int, str]:
        """Host, port and path before the API's own."""
        try:
            parts = urlsplit(self.url)
            port = parts.port or 80
        except ValueError as error:
            raise LabError(f"LAB_URL {self.url!r}: {error}; correct the URL") from error
        if parts.scheme != "http" or not parts.hostname:
            raise LabError(f"LAB_URL {self.url!r}: write it as http://lab:8000")
        return parts.hostname, port, parts.path.rstrip("/")

    def post(self, path: str, document: dict[str, Any], timeout: float = _TIMEOUT) -> dict[str, Any] | None:
        """The answer to a document; None where there is none. Raises one of LOST_ERRORS, Refused or WrongToken."""
        with self._connection(timeout) as connection:
            return self._answer(connection, path, json.dumps(document), {"Connection": "close"})

    def get(self, path: str, timeout: float = _TIMEOUT) -> bytes:
        """The JSON of a page. Raises one of LOST_ERRORS, Refused or WrongToken."""
        with self._connection(timeout) as connection:
            status, content = self._exchange(connection, "GET", path, None, {"Connection": "close"})
        if status != http.HTTPStatus.OK:
            _understood(status, content)
        return content

    @contextlib.contextmanager
    def connected(self) -> Iterator[Callable[[str], dict[str, Any]]]:
        """Keep a connection. The function posts to a path, without a document, and returns the answer.

        It raises as `post` does.
        """
        with self._connection(_PROMPT) as connection:
            yield lambda path: self._answer(connection, path, None, {}) or {}

    @contextlib.contextmanager
    def _connection(self, timeout: float) -> Iterator[http.client.HTTPConnection]:
        host, port, _ = self.split()
        made = http.client.HTTPConnection(host, port, timeout=min(timeout, _CONNECT_TIMEOUT))
        with contextlib.closing(made) as connection:
            connection.connect()
            connection.sock.settimeout(timeout)
            yield connection

    def _answer(
        self, connection: http.client.HTTPConnection, path: str, document: str | None, more: dict[str, str]
    ) -> dict[str, Any] | None:
        return _understood(*self._exchange(connection, "POST", path, document, more))

    def _exchange(
        self, connection: http.client.HTTPConnection, method: str, path: str, body: str | None, more: dict[str, str]
    ) -> tuple[int, bytes]:
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self.token}", **more}
        connection.request(method, self.split()[2] + path, body, headers)
        response = connection.getresponse()
        return response.status, response.read()

    def insist(
        self, path: str, document: dict[str, Any], timeout: float, away: Callable[[Exception], None]
    ) -> dict[str, Any] | None:
        """`post` until the lab answers; `away` is told of the first failure. Raises Refused or WrongToken."""
        for number, pause in enumerate(pauses()):
            try:
                return self.post(path, document, timeout)
            except LOST_ERRORS as error:
                if number == 0:
                    away(error)
                time.sleep(pause)
        raise AssertionError("pauses never end")


def pauses() -> Iterator[float]:
    """Seconds to wait before each new try, ever longer up to one; uneven, or all workers would come at once."""
    pause = _FIRST_PAUSE
    while True:
        yield pause * random.uniform(0.5, 1)  # noqa: S311 - no secret
        pause = min(_LONGEST_PAUSE, 2 * pause)


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
    if 400 <= status < 500 and status != http.HTTPStatus.REQUEST_TIMEOUT:  # a body that was late may be in time again
        raise Refused(status, str(line))
    raise http.client.HTTPException(f"answered {status}: {line}")
