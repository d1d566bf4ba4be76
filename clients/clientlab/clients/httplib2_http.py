"""httplib2 with one `Http` object per thread. It is not thread-safe, and keeps one connection per host."""

from __future__ import annotations

import http.client
import ssl
import threading
from typing import ClassVar

import httplib2

from clientlab.clients.client_interface import Budget, Opened, StatusAndBody
from clientlab.clients.http_client import connecting
from clientlab.errors import ErrorTable, Fault
from clientlab.workload.workload import Request


class Httplib2Http:
    """One `httplib2.Http` per thread."""

    errors: ClassVar[ErrorTable] = (
        (ssl.SSLError, "tls"),
        (ConnectionError, "reset"),
        (TimeoutError, "timeout-read"),
        (http.client.HTTPException, "protocol"),
        (httplib2.HttpLib2Error, "protocol"),
    )

    def __init__(self, budget: Budget, opened: Opened) -> None:  # noqa: ARG002 - Python's audit events count them
        self._budget = budget
        self._of_thread = threading.local()
        self._all: list[httplib2.Http] = []

    def open(self) -> None:
        """Do nothing: each thread makes its own `Http` object."""

    def send(self, request: Request) -> StatusAndBody:
        mine = getattr(self._of_thread, "http", None) or self._new_http()
        kind = _Https if request.url.startswith("https:") else _Http
        url, method = request.url, request.method
        try:
            response, body = mine.request(url, method, request.body, request.headers, connection_type=kind)
        except BaseException:
            mine.close()  # its connection is in an unknown state: the next request opens a new one
            raise
        return response.status, body

    def close(self) -> None:
        for made in self._all:
            made.close()

    def _new_http(self) -> httplib2.Http:
        timeout, ca_file = self._budget.timeout, self._budget.ca_file
        made = self._of_thread.http = httplib2.Http(timeout=timeout, proxy_info=None, ca_certs=ca_file)
        made.follow_redirects = False
        self._all.append(made)
        return made


class _Once(http.client.HTTPConnection):
    """Raises errors unknown to httplib2, which would send the request again despite `httplib2.RETRIES`."""

    def connect(self) -> None:
        with connecting():
            super().connect()

    def getresponse(self) -> http.client.HTTPResponse:
        try:
            return super().getresponse()
        except http.client.RemoteDisconnected as error:
            raise Fault("reset", str(error)) from error
        except http.client.BadStatusLine as error:
            raise Fault("protocol", f"status line {error}") from error


class _Http(_Once, httplib2.HTTPConnectionWithTimeout):
    """Over plain HTTP."""


class _Https(_Once, httplib2.HTTPSConnectionWithTimeout):
    """Over TLS."""
