"""curl-cffi without impersonation: one `Session` with a libcurl handle for each thread, or one `AsyncSession`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, cast

from curl_cffi import AsyncCurl, AsyncSession, CurlInfo, CurlMOpt, CurlOpt, Response, Session, ffi, lib
from curl_cffi.requests.exceptions import RequestException

from clientlab.clients.client_interface import Budget, Opened, Sink, StatusAndBody
from clientlab.clients.libcurl import kind_of, limits_of
from clientlab.errors import CONNECT_KINDS, ErrorTable, Fault
from clientlab.workload.workload import Request


class _Curl:
    """What both sessions share: they speak HTTP/1.1 and send only the lab's headers."""

    errors: ClassVar[ErrorTable] = ()

    def __init__(self, budget: Budget, opened: Opened) -> None:
        self._budget = budget
        self._opened = opened

    def _session_options(self) -> dict[str, Any]:
        return {
            "http_version": "v1",
            "allow_redirects": False,
            "discard_cookies": True,
            "trust_env": False,
            "curl_options": {CurlOpt(option): value for option, value in limits_of(self._budget.timeout).items()},
            "curl_infos": [CurlInfo.NUM_CONNECTS],
        }

    def _options(self, request: Request, write: Any) -> dict[str, Any]:
        return {
            "headers": request.headers,
            "content": request.body,
            "timeout": None,  # not for the whole request: see libcurl.limits_of
            "verify": self._budget.ca_file or True,
            "accept_encoding": None,
            "quote": False,
            "content_callback": write,
        }

    def _counted(self, response: Response, kind: str = "") -> Response:
        """Report a connection that libcurl opened, or failed to open, for the request."""
        if cast("dict[Any, Any]", response.infos)[CurlInfo.NUM_CONNECTS] or kind in CONNECT_KINDS:
            self._opened()
        return response

    def _fault_of(self, error: RequestException) -> Fault:
        response, message = cast("Response", error.response), str(error)
        is_connecting = "Connection timed out" in message
        kind = kind_of(int(error.code), message, has_head=bool(response.status_code), is_connecting=is_connecting)
        self._counted(response, kind)
        return Fault(kind, message)


class CurlCffiSession(_Curl):
    """One session, which has a libcurl handle, and so a connection, for each thread."""

    def open(self) -> None:
        self._session = Session[Response](**self._session_options())

    def send(self, request: Request) -> StatusAndBody:
        response = self._response(request)
        return response.status_code, response.content

    def stream(self, request: Request, sink: Sink) -> int:
        return self._response(request, _writer(sink)).status_code

    def timed(self, request: Request) -> tuple[int, bytes, float]:
        response = self._response(request)
        return response.status_code, response.content, response.elapsed.total_seconds()

    def close(self) -> None:
        self._session.close()

    def _response(self, request: Request, write: Any = None) -> Response:
        method = cast("Any", request.method)
        try:
            return self._counted(self._session.request(method, request.url, **self._options(request, write)))
        except RequestException as error:
            raise self._fault_of(error) from error


class CurlCffiAsync(_Curl):
    """One session for the event loop, with libcurl's multi interface: as many handles as connections."""

    async def open(self) -> None:
        options, connections = self._session_options(), self._budget.connections
        if connections is None:
            self._session = AsyncSession[Response](**options)
            return
        self._session = AsyncSession[Response](max_clients=connections, **options)
        keep_connections(self._session.acurl, connections)

    async def send(self, request: Request) -> StatusAndBody:
        response = await self._response(request)
        return response.status_code, response.content

    async def stream(self, request: Request, sink: Sink) -> int:
        return (await self._response(request, _writer(sink))).status_code

    async def timed(self, request: Request) -> tuple[int, bytes, float]:
        response = await self._response(request)
        return response.status_code, response.content, response.elapsed.total_seconds()

    async def close(self) -> None:
        await self._session.close()

    async def _response(self, request: Request, write: Any = None) -> Response:
        method = cast("Any", request.method)
        try:
            return self._counted(await self._session.request(method, request.url, **self._options(request, write)))
        except RequestException as error:
            raise self._fault_of(error) from error


def keep_connections(multi: AsyncCurl, number: int) -> None:
    """Keep so many connections. By default libcurl keeps four times as many as handles are at work, and closes others.

    `AsyncCurl.setopt` is not used: it passes the address of a number where libcurl expects the number.
    """
    lib.curl_multi_setopt(multi._curlm, CurlMOpt.MAXCONNECTS, ffi.cast("void *", number))  # noqa: SLF001


def _writer(sink: Sink) -> Callable[[bytes], int]:
    """The callback by which libcurl hands over a chunk of the body."""

    def write(chunk: bytes) -> int:
        sink(chunk)
        return len(chunk)

    return write
