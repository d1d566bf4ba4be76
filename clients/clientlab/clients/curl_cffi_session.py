"""curl-cffi with one `Session`, which has a libcurl handle, and so a connection, for each thread."""

from __future__ import annotations

import math
from typing import Any, ClassVar, cast

from curl_cffi import CurlECode, CurlInfo, CurlOpt, Response, Session
from curl_cffi.requests.exceptions import RequestException

from clientlab.clients.descriptors import out_of_descriptors
from clientlab.clients.interfaces import Budget, Opened, Reply, Sink
from clientlab.errors import CONNECT_KINDS, NO_DESCRIPTOR, ErrorTable, Fault
from clientlab.workload.workload import Request

_KINDS = {
    CurlECode.UNSUPPORTED_PROTOCOL: "protocol",  # the answer is not HTTP
    CurlECode.COULDNT_RESOLVE_HOST: "connect",
    CurlECode.COULDNT_CONNECT: "connect",
    CurlECode.WEIRD_SERVER_REPLY: "protocol",
    CurlECode.PARTIAL_FILE: "protocol",
    CurlECode.OPERATION_TIMEDOUT: "timeout-read",
    CurlECode.SSL_CONNECT_ERROR: "tls",
    CurlECode.GOT_NOTHING: "reset",
    CurlECode.SEND_FAIL_REWIND: "reset",
    CurlECode.SEND_ERROR: "reset",
    CurlECode.RECV_ERROR: "reset",
    CurlECode.PEER_FAILED_VERIFICATION: "tls",
    CurlECode.SSL_CACERT_BADFILE: "tls",
}
_LEFT = ("Connection reset by peer", "closed abruptly")
"""libcurl's messages for a peer that left: in a handshake no connection, in a body over TLS a truncated one."""


class CurlCffiSession:
    """One session without impersonation: it speaks HTTP/1.1 and sends only the lab's headers."""

    errors: ClassVar[ErrorTable] = ()

    def __init__(self, budget: Budget, opened: Opened) -> None:
        self._budget = budget
        self._opened = opened

    def open(self) -> None:
        self._session = Session[Response](
            http_version="v1",
            allow_redirects=False,
            discard_cookies=True,
            trust_env=False,
            curl_options=_limits(self._budget.timeout),
            curl_infos=[CurlInfo.NUM_CONNECTS],
        )

    def send(self, request: Request) -> Reply:
        response = self._response(request)
        return response.status_code, response.content

    def stream(self, request: Request, sink: Sink) -> int:
        def write(chunk: bytes) -> int:
            sink(chunk)
            return len(chunk)

        return self._response(request, write).status_code

    def timed(self, request: Request) -> tuple[int, bytes, float]:
        response = self._response(request)
        return response.status_code, response.content, response.elapsed.total_seconds()

    def close(self) -> None:
        self._session.close()

    def _response(self, request: Request, write: Any = None) -> Response:
        try:
            response = self._session.request(
                cast("Any", request.method),
                request.url,
                headers=request.headers,
                content=request.body,
                timeout=None,  # not for the whole request: see _limits
                verify=cast("Any", self._budget.ca_file or True),
                accept_encoding=None,
                quote=False,
                content_callback=write,
            )
        except RequestException as error:
            raise self._fault_of(error, cast("Response", error.response)) from error
        if _connects(response):
            self._opened()
        return response

    def _fault_of(self, error: RequestException, response: Response) -> Fault:
        message = str(error)
        left = any(text in message for text in _LEFT)
        kind = _KINDS.get(cast("CurlECode", error.code), f"other:curl-{int(error.code)}")
        if kind == "timeout-read" and "Connection timed out" in message:
            kind = "timeout-connect"
        elif error.code in {CurlECode.OUT_OF_MEMORY, CurlECode.COULDNT_CONNECT} and out_of_descriptors():
            kind = NO_DESCRIPTOR
        elif error.code == CurlECode.SSL_CONNECT_ERROR and left:
            kind = "connect"
        elif error.code == CurlECode.RECV_ERROR and (
            "chunk" in message or (response.status_code and "abruptly" in message)
        ):
            kind = "protocol"
        if _connects(response) or kind in CONNECT_KINDS or kind == NO_DESCRIPTOR:
            self._opened()
        return Fault(kind, message)


def _connects(response: Response) -> int:
    """The connections that libcurl opened for the request."""
    return int(cast("dict[Any, Any]", response.infos)[CurlInfo.NUM_CONNECTS])


def _limits(seconds: float) -> dict[CurlOpt, int]:
    """The options that limit connecting and each wait for bytes; below a second, the whole request."""
    milliseconds = {CurlOpt.CONNECTTIMEOUT_MS: int(seconds * 1000)}
    if seconds < 1:
        return {**milliseconds, CurlOpt.TIMEOUT_MS: int(seconds * 1000)}
    return {**milliseconds, CurlOpt.LOW_SPEED_LIMIT: 1, CurlOpt.LOW_SPEED_TIME: math.ceil(seconds)}
