"""What a library reports of a request's phases is read here: from outside, in a trial that no figure has.

A library is observed by what it offers for that: aiohttp's tracing, the extension `trace` of httpcore, the times of
libcurl, what niquests knows of a connection. urllib3 offers nothing, so its functions are timed. A phase that a library
does not report is missing.

The wait for a connection ends when the library sends on one that it has, or begins to make a new one.
"""

from __future__ import annotations

import functools
import importlib
import sys
import threading
import weakref
from collections.abc import Callable
from time import perf_counter
from typing import Any

from clientlab.measuring.phases import Phases


def observe() -> Phases:
    """Observe each of the libraries that the trial has imported. Call it before a client is opened."""
    found = Phases()
    for name, install in _OBSERVERS.items():
        if name in sys.modules or _IMPORTED_LATER.get(name) in sys.modules:
            install(importlib.import_module(name), found)
    return found


class _AiohttpRequest:
    """The moments of one request of aiohttp, by its tracing. Its connecting holds the TLS handshake."""

    def __init__(self, found: Phases) -> None:
        self._found, self._at = found, {"request": perf_counter()}
        self._resolving = 0.0

    def begins(self, moment: str) -> None:
        self._at[moment] = perf_counter()

    def has_connection(self) -> None:
        """It has one, or begins to make one."""
        self._ends("request", "pool")

    def resolved(self) -> None:
        self._resolving += self._ends("dns", "dns")

    def connected(self) -> None:
        if (began := self._at.pop("connect", None)) is not None:
            self._found.add("connect", perf_counter() - began - self._resolving)

    def answered(self) -> None:
        self._ends("sent", "first_byte")
        self.begins("body")

    def read(self) -> None:
        self._ends("body", "body")

    def _ends(self, moment: str, phase: str) -> float:
        if (began := self._at.pop(moment, None)) is None:
            return 0.0
        seconds = perf_counter() - began
        self._found.add(phase, seconds)
        return seconds


def _observe_aiohttp(aiohttp: Any, found: Phases) -> None:
    config = aiohttp.TraceConfig(trace_config_ctx_factory=lambda **_more: _AiohttpRequest(found))

    def on(signal: str, then: Callable[[_AiohttpRequest], None]) -> None:
        async def call(_session: Any, context: _AiohttpRequest, _parameters: Any) -> None:
            then(context)

        getattr(config, f"on_{signal}").append(call)

    on("connection_reuseconn", _AiohttpRequest.has_connection)
    on("connection_create_start", _AiohttpRequest.has_connection)
    on("connection_create_start", lambda request: request.begins("connect"))
    on("dns_resolvehost_start", lambda request: request.begins("dns"))
    on("dns_resolvehost_end", _AiohttpRequest.resolved)
    on("connection_create_end", _AiohttpRequest.connected)
    on("request_headers_sent", lambda request: request.begins("sent"))
    on("request_chunk_sent", lambda request: request.begins("sent"))
    on("request_end", _AiohttpRequest.answered)
    on("response_chunk_received", _AiohttpRequest.read)
    make = aiohttp.ClientSession.__init__

    @functools.wraps(make)
    def init(self: Any, *args: Any, trace_configs: Any = None, **more: Any) -> None:
        make(self, *args, trace_configs=[*(trace_configs or ()), config], **more)

    aiohttp.ClientSession.__init__ = init


_IMPORTED_LATER = {"httpcore": "httpx", "httpcore2": "httpx2"}
"""Module → what imports it with its first client."""

_HEADERS = "receive_response_headers"
_OF_EVENT = {"connect_tcp": "connect", "start_tls": "tls", "receive_response_body": "body"}
"""Event of httpcore → phase. Its connecting holds the name resolution."""


class _HttpcoreRequest:
    """One request of httpcore: its events, in their order."""

    def __init__(self, found: Phases) -> None:
        self._found, self._began = found, perf_counter()
        self._at: dict[str, float] = {}
        self._sent = 0.0
        self._waits = True

    def event(self, name: str, _info: object) -> None:
        """An event: ``connection.connect_tcp.started``, ``http11.receive_response_headers.complete``."""
        now = perf_counter()
        what, _, state = name.partition(".")[2].rpartition(".")
        if state == "started":
            self._at[what] = now
            if self._waits and what in {"connect_tcp", "send_request_headers"}:
                self._waits = False
                self._found.add("pool", now - self._began)
        elif state == "complete" and what == _HEADERS:
            self._found.add("first_byte", now - self._sent)
        elif state == "complete" and what.startswith("send_request"):
            self._sent = now
        elif state == "complete" and what in _OF_EVENT and what in self._at:
            self._found.add(_OF_EVENT[what], now - self._at[what])

    async def aevent(self, name: str, info: object) -> None:
        """The same, awaited."""
        self.event(name, info)


def _observe_httpcore(httpcore: Any, found: Phases) -> None:
    blocking, awaited = httpcore.ConnectionPool, httpcore.AsyncConnectionPool
    handle, ahandle = blocking.handle_request, awaited.handle_async_request

    @functools.wraps(handle)
    def traced(self: Any, request: Any) -> Any:
        request.extensions = {**request.extensions, "trace": _HttpcoreRequest(found).event}
        return handle(self, request)

    @functools.wraps(ahandle)
    async def atraced(self: Any, request: Any) -> Any:
        request.extensions = {**request.extensions, "trace": _HttpcoreRequest(found).aevent}
        return await ahandle(self, request)

    blocking.handle_request, awaited.handle_async_request = traced, atraced


class _Connecting(threading.local):
    """Of this thread: whether it connects, and the seconds of the name resolution in that."""

    is_under_way = False
    resolving = 0.0


def _observe_urllib3(urllib3: Any, found: Phases) -> None:
    """By the time in its functions, and in those of the standard library that it calls."""
    import http.client  # noqa: PLC0415 - gevent patches sockets before

    connecting, answered = _Connecting(), weakref.WeakKeyDictionary[Any, float]()
    connect = urllib3.util.connection.create_connection

    @functools.wraps(connect)
    def connected(*args: Any, **more: Any) -> Any:
        connecting.is_under_way, connecting.resolving = True, 0.0
        began = perf_counter()
        try:
            return connect(*args, **more)
        finally:
            connecting.is_under_way = False
            found.add("connect", perf_counter() - began - connecting.resolving)

    def resolved(seconds: float, _host: Any) -> None:
        if connecting.is_under_way:  # others resolve names, too
            connecting.resolving = seconds
            found.add("dns", seconds)

    def has_headers(seconds: float, response: Any) -> None:
        found.add("first_byte", seconds)
        answered[response] = perf_counter()

    _timed(urllib3.connectionpool.HTTPConnectionPool, "_get_conn", lambda seconds, _pool: found.add("pool", seconds))
    urllib3.util.connection.create_connection = connected
    _timed(urllib3.connection, "_ssl_wrap_socket_and_match_hostname", lambda seconds, _: found.add("tls", seconds))
    _timed(urllib3.util.connection.socket, "getaddrinfo", resolved)
    _timed(http.client.HTTPResponse, "begin", has_headers)
    release = urllib3.response.HTTPResponse.release_conn

    @functools.wraps(release)
    def released(self: Any) -> None:
        # It is called when the body has been read.
        if (began := answered.pop(self._original_response, None)) is not None:
            found.add("body", perf_counter() - began)
        release(self)

    urllib3.response.HTTPResponse.release_conn = released


def _timed(owner: Any, name: str, then: Callable[[float, Any], None]) -> None:
    """Call `then` with the seconds of each call of a function, and with its first argument."""
    function = getattr(owner, name, None)
    if function is None:  # another release of the library; the phase is missing
        return

    @functools.wraps(function)
    def call(*args: Any, **more: Any) -> Any:
        began = perf_counter()
        answer = function(*args, **more)
        then(perf_counter() - began, args[0] if args else None)
        return answer

    setattr(owner, name, call)


def _add_of_curl(found: Phases, times: tuple[float, ...], *, is_new: bool) -> None:
    """The phases of a transfer of libcurl. Its times are from the beginning, each with those before it.

    libcurl does not report how long a request waited before it was handed over.
    """
    resolved, connected, secured, ready, answered, ended = times
    if is_new:
        found.add("dns", resolved)
        found.add("connect", connected - resolved)
        if secured:
            found.add("tls", secured - connected)
    if answered:
        found.add("first_byte", answered - ready)
        found.add("body", ended - answered)


_TIMES = tuple(
    f"{name}_TIME" for name in ("NAMELOOKUP", "CONNECT", "APPCONNECT", "PRETRANSFER", "STARTTRANSFER", "TOTAL")
)
"""The times of libcurl. PRETRANSFER is the moment before it sends the request, so its first byte holds the sending."""


def _observe_pycurl(clients: Any, found: Phases) -> None:
    """By the times of each transfer whose status the lab reads."""
    import pycurl  # noqa: PLC0415 - a trial with it has imported it

    status_of = clients.PycurlHandle.status_of

    @functools.wraps(status_of)
    def observed(self: Any, handle: Any) -> Any:
        is_new = bool(handle.getinfo(pycurl.NUM_CONNECTS))
        _add_of_curl(found, tuple(handle.getinfo(getattr(pycurl, name)) for name in _TIMES), is_new=is_new)
        return status_of(self, handle)

    clients.PycurlHandle.status_of = observed


def _observe_curl_cffi(clients: Any, found: Phases) -> None:
    """By the times that curl-cffi keeps with each response, when it is asked for them."""
    from curl_cffi import CurlInfo  # noqa: PLC0415 - a trial with it has imported it

    session = clients.CurlCffiSession.__base__
    options, counted = session._session_options, session._counted  # noqa: SLF001 - of the lab itself
    wanted = [getattr(CurlInfo, name) for name in _TIMES]

    @functools.wraps(options)
    def more_options(self: Any) -> dict[str, Any]:
        known: dict[str, Any] = options(self)
        return {**known, "curl_infos": [*known["curl_infos"], *wanted]}

    @functools.wraps(counted)
    def observed(self: Any, response: Any) -> Any:
        if response is not None and all(info in response.infos for info in wanted):
            is_new = bool(response.infos[CurlInfo.NUM_CONNECTS])
            _add_of_curl(found, tuple(response.infos[info] for info in wanted), is_new=is_new)
        return counted(self, response)

    session._session_options, session._counted = more_options, observed  # noqa: SLF001 - of the lab itself


def _observe_niquests(niquests: Any, found: Phases) -> None:
    """By what it knows of a connection with the response that came first on it."""
    send, asend = niquests.Session.send, niquests.AsyncSession.send

    def note(response: Any) -> None:
        for phase, name in _OF_NIQUESTS.items():
            # Zero says that the connection was there already.
            if seconds := getattr(response.conn_info, name, None):
                found.add(phase, seconds.total_seconds())

    @functools.wraps(send)
    def sent(*args: Any, **more: Any) -> Any:
        response = send(*args, **more)
        note(response)
        return response

    @functools.wraps(asend)
    async def asent(*args: Any, **more: Any) -> Any:
        response = await asend(*args, **more)
        note(response)
        return response

    niquests.Session.send, niquests.AsyncSession.send = sent, asent


_OF_NIQUESTS = {
    "dns": "resolution_latency", "connect": "established_latency", "tls": "tls_handshake_latency",
}  # fmt: skip
"""Phase → what niquests calls it."""


_OBSERVERS: dict[str, Callable[[Any, Phases], None]] = {
    "aiohttp": _observe_aiohttp,
    "httpcore": _observe_httpcore,
    "httpcore2": _observe_httpcore,
    "urllib3": _observe_urllib3,
    "niquests": _observe_niquests,
    "clientlab.clients.pycurl_clients": _observe_pycurl,
    "clientlab.clients.curl_cffi_session": _observe_curl_cffi,
}
"""Module → what observes it."""
