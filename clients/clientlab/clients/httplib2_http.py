"""httplib2 with one `Http` object per thread.

It is not thread-safe, and keeps one connection per host.
"""

from __future__ import annotations

import http.client
import ssl
import threading
from typing import ClassVar

import httplib2

from clientlab.clients.client_interface import (
    Budget,
    Client,
    ClientSpec,
    Opened,
    Quirks,
    StatusAndBody,
)
from clientlab.clients.http_client import connecting
from clientlab.errors import ClientError, ErrorTable
from clientlab.workload.workload import Request


@ClientSpec(
    "httplib2",
    "httplib2",
    "per thread",
    pairs=("threads",),
    quirks=Quirks(closes_after_head=True),
)
class Httplib2Http(Client):
    """One httplib2.Http per thread."""

    errors: ClassVar[ErrorTable] = (
        (ssl.SSLError, "tls"),
        (ConnectionError, "reset"),
        (TimeoutError, "timeout-read"),
        (http.client.HTTPException, "protocol"),
        (httplib2.HttpLib2Error, "protocol"),
    )

    def __init__(self, budget: Budget, opened: Opened) -> None:
        super().__init__(budget, opened)
        self._mine = threading.local()
        self._all: list[httplib2.Http] = []

    def send(self, request: Request) -> StatusAndBody:
        mine = getattr(self._mine, "http", None) or self._new_http()
        kind = _Https if request.url.startswith("https:") else _Http
        url, method = request.url, request.method
        try:
            response, body = mine.request(
                url, method, request.body, request.headers, connection_type=kind
            )
        except BaseException:
            # Its connection is in an unknown state: the next request opens a new one.
            mine.close()
            raise
        return response.status, body

    def close(self) -> None:
        for made in self._all:
            made.close()

    def _new_http(self) -> httplib2.Http:
        timeout, ca_file = self._budget.timeout, self._budget.ca_file
        made = self._mine.http = httplib2.Http(
            timeout=timeout, proxy_info=None, ca_certs=ca_file
        )
        made.follow_redirects = False
        self._all.append(made)
        return made


class _WithoutRetries(http.client.HTTPConnection):
    """Raises errors that httplib2 does not know.

    It would send the request again, despite `httplib2.RETRIES`.
    """

    def connect(self) -> None:
        with connecting():
            super().connect()

    def getresponse(self) -> http.client.HTTPResponse:
        try:
            return super().getresponse()
        except http.client.RemoteDisconnected as error:
            raise ClientError("reset", str(error)) from error
        except http.client.BadStatusLine as error:
            raise ClientError("protocol", f"status line {error}") from error


class _Http(_WithoutRetries, httplib2.HTTPConnectionWithTimeout): ...


class _Https(_WithoutRetries, httplib2.HTTPSConnectionWithTimeout): ...
