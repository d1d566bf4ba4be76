"""The scenarios of a hostile server over HTTP/2: answers that no correct server sends, and answers without an end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from clientlab.conformance.evidence import Evidence, measure, speaks_http2
from clientlab.conformance.h2_server import (
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    GOAWAY,
    HEADERS,
    PING,
    RST_STREAM,
    Paths,
    frame,
    h2_server,
    header,
)  # fmt: skip
from clientlab.conformance.hostile import BROKEN, FORGIVEN, TIMEOUT, EndlessOutcome, ended_scenario, permitted
from clientlab.conformance.scenario import CannotProvoke, Check, Scenario
from clientlab.conformance.server import Endless, Last, ServerAnswer
from clientlab.conformance.tls import CA_FILE
from clientlab.strategies import Strategy
from clientlab.workload.workload import Workload

_OK = b"\x88"  # :status 200, an entry of HPACK's static table
_BODY = b'{"ok": true}'
_ENHANCE_YOUR_CALM = 11
_LAST_HEADERS = END_HEADERS | END_STREAM


@dataclass(frozen=True)
class H2Answer:
    """One answer: its frames on a stream, and the kinds of error that are permitted; ``none`` for a success.

    After a malformed message that has an end, the server leaves the connection open: it is an error of the stream
    (RFC 9113, 8.1.1), so a client may send its next request on that connection.
    """

    name: str
    frames: Callable[[int], ServerAnswer]
    kinds: frozenset[str] = BROKEN


def _headers(stream: int, block: bytes = b"", flags: int = END_HEADERS) -> bytes:
    return frame(HEADERS, flags, stream, _OK + block)


def _goodbye(error: int) -> bytes:
    return frame(GOAWAY, 0, 0, bytes(4) + error.to_bytes(4, "big"))


def _reset(stream: int) -> bytes:
    return frame(RST_STREAM, 0, stream, (2).to_bytes(4, "big"))  # INTERNAL_ERROR


def _good(stream: int) -> bytes:
    return _headers(stream) + frame(DATA, END_STREAM, stream, _BODY)


def _sized(stream: int, length: bytes) -> bytes:
    return _headers(stream, header(b"content-length", length)) + frame(DATA, END_STREAM, stream, _BODY)


ANSWERS = (
    H2Answer("HTTP/2: closed before the answer", lambda _: None),
    H2Answer("HTTP/2: closed in the body", lambda s: Last(_headers(s) + frame(DATA, 0, s, _BODY))),
    H2Answer("HTTP/2: GOAWAY", lambda _: Last(_goodbye(0))),
    H2Answer("HTTP/2: GOAWAY with an error", lambda _: Last(_goodbye(_ENHANCE_YOUR_CALM))),
    H2Answer("HTTP/2: stream reset", _reset),
    H2Answer("HTTP/2: stream reset in the body", lambda s: _headers(s) + _reset(s)),
    H2Answer("HTTP/2: garbage", lambda _: Last(bytes(range(256)) * 4)),
    H2Answer("HTTP/2: an answer of HTTP/1.1", lambda _: Last(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")),
    H2Answer("HTTP/2: body before the headers", lambda s: frame(DATA, END_STREAM, s, _BODY)),
    H2Answer("HTTP/2: no status", lambda s: frame(HEADERS, _LAST_HEADERS, s, header(b"x", b"y")), FORGIVEN),
    H2Answer("HTTP/2: headers that are no HPACK", lambda s: Last(frame(HEADERS, _LAST_HEADERS, s, b"\xff" * 20))),
    H2Answer("HTTP/2: a frame beyond the agreed size", lambda s: Last(_headers(s) + frame(DATA, 0, s, bytes(1 << 20)))),
    H2Answer("HTTP/2: an answer on another stream", lambda s: Last(_good(s + 2))),
    H2Answer("HTTP/2: negative content-length", lambda s: _sized(s, b"-5"), BROKEN),
    H2Answer("HTTP/2: more body than content-length", lambda s: _sized(s, b"5"), FORGIVEN),
    H2Answer("HTTP/2: less body than content-length", lambda s: _sized(s, b"500"), FORGIVEN),
)  # fmt: skip

ENDLESS: dict[str, Callable[[int], Endless]] = {
    "HTTP/2: a body byte by byte": lambda s: Endless(_headers(s), frame(DATA, 0, s, b"x"), 0.25),
    "HTTP/2: headers without an end": lambda s: Endless(
        _headers(s, flags=0), frame(CONTINUATION, 0, s, header(b"x", b"y" * 100)), 0.01
    ),
    "HTTP/2: pings without an end": lambda _: Endless(b"", frame(PING, 0, 0, bytes(8)) * 10, 0.01),
}
"""Name → the frames on a stream."""


def _paths() -> Paths:
    """The reader of one connection's headers. Raises CannotProvoke without the library of h2."""
    try:
        import hpack  # noqa: PLC0415 - only these scenarios need it
    except ModuleNotFoundError:
        raise CannotProvoke("the server of HTTP/2 needs the package hpack: pip install hpack") from None
    decoder = hpack.Decoder()
    return lambda block: dict(decoder.decode(block, raw=True))[b":path"].decode()


def _answer(path: str, stream: int) -> ServerAnswer:
    """Request 2k gets answer k, and each other request a good one."""
    at, good = divmod(int(path[1:]), 2)
    return _good(stream) if good else ANSWERS[at].frames(stream)


def _do(strategy: Strategy) -> Evidence:
    _paths()
    found = _trial(strategy)
    return _trial(strategy) if any(kind.startswith("timeout") for kind in found.kinds.values()) else found


def _trial(strategy: Strategy) -> Evidence:
    workload = Workload(path="/{k}", requests=2 * len(ANSWERS), concurrency=1, warmup=0, timeout=TIMEOUT)
    with h2_server(_answer, _paths) as server:
        return measure(strategy, workload, server.url, ca_file=CA_FILE)


def _goes_on(found: Evidence) -> str:
    for at, hostile in enumerate(ANSWERS):
        kind, before = found.kind(2 * at + 1), found.kind(2 * at)
        # The server may have closed a connection on which the client had found nothing wrong.
        if kind != "none" and not (before == "none" and kind in BROKEN):
            return f"the request after {hostile.name!r} is a good one, and it is recorded as {kind}"
    return ""


def _kind(found: Evidence, check: str) -> str | None:
    return next((found.kind(2 * at) for at, hostile in enumerate(ANSWERS) if hostile.name == check), None)


_CHECKS: dict[str, Check[Evidence]] = {
    **{hostile.name: partial(permitted, 2 * at, hostile.kinds) for at, hostile in enumerate(ANSWERS)},
    "HTTP/2: goes on after a hostile answer": _goes_on,
}


def _ended(strategy: Strategy, name: str) -> EndlessOutcome:
    _paths()
    with h2_server(lambda _, stream: ENDLESS[name](stream), _paths) as server:
        return EndlessOutcome.of(strategy, server.url, server.let_go, CA_FILE)


HOSTILE_H2 = Scenario("hostile server over HTTP/2", _do, _CHECKS, speaks_http2, _kind, malformed=True)
WITHOUT_END_H2 = ended_scenario("answers without an end over HTTP/2", tuple(ENDLESS), _ended, speaks_http2)
