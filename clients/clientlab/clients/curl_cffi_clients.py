"""curl-cffi without impersonation: one `Session` with a libcurl handle for each thread,
or one `AsyncSession`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, cast

from curl_cffi import (
    AsyncSession,
    CurlInfo,
    CurlMOpt,
    CurlOpt,
    Response,
    Session,
    ffi,
    lib,
)
from curl_cffi.requests.exceptions import RequestException

from clientlab.clients.client_interface import (
    LIBCURL_QUIRKS,
    ClientBase,
    ClientSpec,
    Sink,
    StatusAndBody,
)
from clientlab.clients.libcurl import classify_error, make_limits
from clientlab.errors import CONNECT_KINDS, ClientError, ErrorTable
from clientlab.workload.workload import Request


class _CurlCffi(ClientBase):
    errors: ClassVar[ErrorTable] = ()

    def _session_options(self) -> dict[str, Any]:
        return {
            "http_version": "v1",
            "headers": {
                "Content-Type": None
            },  # libcurl would call a POST without a body a form
            "allow_redirects": False,
            "discard_cookies": True,
            "trust_env": False,
            "curl_options": {
                CurlOpt(option): value
                for option, value in make_limits(
                    self._budget.timeout, self._budget.call_timeout
                ).items()
            },
            "curl_infos": [CurlInfo.NUM_CONNECTS],
        }

    def _options(self, request: Request, write: Any) -> dict[str, Any]:
        return {
            "method": request.method,
            "url": request.url,
            "headers": request.headers,
            "content": request.body,
            "timeout": None,  # none for the whole request: see libcurl.make_limits
            "verify": self._budget.ca_file or True,
            "accept_encoding": ""
            if self._budget.decode
            else None,  # decode all that libcurl can
            "quote": False,
            "content_callback": write,
        }

    def _count_connection(self, response: Response, kind: str = "") -> Response:
        """Report a connection that libcurl opened, or failed to open, for
        the request.
        """
        if (
            cast("dict[Any, Any]", response.infos)[CurlInfo.NUM_CONNECTS]
            or kind in CONNECT_KINDS
        ):
            self._opened()
        return response

    def _make_error(self, error: RequestException) -> ClientError:
        response, message = cast("Response", error.response), str(error)
        is_connecting = "Connection timed out" in message
        kind = classify_error(
            int(error.code),
            message,
            has_head=bool(response.status_code),
            is_connecting=is_connecting,
        )
        self._count_connection(response, kind)
        return ClientError(kind, message)


@ClientSpec(
    "curl-cffi",
    "curl-cffi",
    "per thread",
    pairs=("threads",),
    native=True,
    limits_calls=True,
    quirks=LIBCURL_QUIRKS,
)
class CurlCffiSession(_CurlCffi):
    """One curl_cffi.Session without impersonation: a libcurl handle per thread."""

    def open(self) -> None:
        self._session = Session[Response](**self._session_options())

    def send(self, request: Request) -> StatusAndBody:
        response = self._respond(request)
        return response.status_code, response.content

    def stream(self, request: Request, sink: Sink) -> int:
        return self._respond(request, _make_writer(sink)).status_code

    def timed(self, request: Request) -> tuple[int, bytes, float]:
        response = self._respond(request)
        return response.status_code, response.content, response.elapsed.total_seconds()

    def close(self) -> None:
        self._session.close()

    def _respond(self, request: Request, write: Any = None) -> Response:
        try:
            return self._count_connection(
                self._session.request(**self._options(request, write))
            )
        except RequestException as error:
            raise self._make_error(error) from error


@ClientSpec(
    "curl-cffi-async",
    "curl-cffi",
    "pool",
    kind="asyncio",
    pairs=("workers",),
    native=True,
    limits_calls=True,
    quirks=LIBCURL_QUIRKS,
)
class CurlCffiAsync(_CurlCffi):
    """One curl_cffi.AsyncSession without impersonation, on libcurl's multi
    interface.
    """

    async def open(self) -> None:
        options, connections = self._session_options(), self._budget.connections
        if connections is not None:
            options["max_clients"] = connections
        self._session = AsyncSession[Response](**options)
        if connections is not None:
            # By default, libcurl keeps four times as many connections as there are
            # working handles. `AsyncCurl.setopt` passes the address of a number where
            # libcurl expects the number.
            multi = self._session.acurl._curlm  # noqa: SLF001
            lib.curl_multi_setopt(
                multi, CurlMOpt.MAXCONNECTS, ffi.cast("void *", connections)
            )

    async def send(self, request: Request) -> StatusAndBody:
        response = await self._respond(request)
        return response.status_code, response.content

    async def stream(self, request: Request, sink: Sink) -> int:
        return (await self._respond(request, _make_writer(sink))).status_code

    async def timed(self, request: Request) -> tuple[int, bytes, float]:
        response = await self._respond(request)
        return response.status_code, response.content, response.elapsed.total_seconds()

    async def close(self) -> None:
        await self._session.close()

    async def _respond(self, request: Request, write: Any = None) -> Response:
        try:
            return self._count_connection(
                await self._session.request(**self._options(request, write))
            )
        except RequestException as error:
            raise self._make_error(error) from error


def _make_writer(sink: Sink) -> Callable[[bytes], int]:
    """Return the callback by which libcurl hands over a chunk of the body."""

    def write(chunk: bytes) -> int:
        sink(chunk)
        return len(chunk)

    return write
