"""Answers of a hostile server over HTTP/1.1, and the kinds of error that a client may make of each.

`NOT_ANSWERS` are no answers by RFC 9112: to take one for a success is an error. Others are answers that a client may
refuse or forgive. Each has an end; those without one are in `ENDLESS`.
"""

from __future__ import annotations

from dataclasses import dataclass

from clientlab.conformance.server import Endless, Last, Reset, ok

BROKEN = frozenset({"protocol", "reset"})
MALFORMED = frozenset({"protocol"})
FORGIVEN = frozenset({"protocol", "reset", "none"})

_NO_SUCCESS = MALFORMED | {"status-5xx"}

_BODY = b'{"ok": true}'
_END = b"\r\n" + _BODY
_STATUS = b"HTTP/1.1 200 OK\r\n"
_LENGTH = b"Content-Length: %d\r\n" % len(_BODY)
_CLOSE = b"Connection: close\r\n"
_CHUNKED = _STATUS + b"Transfer-Encoding: chunked\r\n\r\n"
_CHUNKS = b"\r\n5\r\nabcde\r\n0\r\n\r\n"
_GZIP = b"\x1f\x8b\x08\0\0\0"
_AWAY = b"HTTP/1.1 302 Found\r\nLocation: ?again\r\nContent-Length: 0\r\n\r\n"
_MIB = b"x" * (1 << 20)


@dataclass(frozen=True)
class HostileAnswer:
    """One answer, and the kinds of error that are permitted; ``none`` for a success.

    `greets`: it is sent on a new connection, before any request.
    """

    name: str
    answer: bytes | None
    kinds: frozenset[str]
    greets: bool = False


def _with(*lines: bytes, body: bytes = _BODY) -> Last:
    """An answer 200 with these header lines, after which the server closes the connection."""
    return Last(_STATUS + _CLOSE + b"".join(line + b"\r\n" for line in lines) + b"\r\n" + body)


def _lengths(*values: bytes) -> Last:
    return _with(*(b"Content-Length: " + value for value in values))


NOT_ANSWERS = (
    HostileAnswer("closes at accept", Last(), frozenset({"reset"}), greets=True),
    HostileAnswer("resets at accept", Reset(), BROKEN | {"connect"}, greets=True),
    HostileAnswer("reset after the headers", Reset(ok()[: -len(_BODY)]), BROKEN),
    HostileAnswer("half a status line", Last(b"HTTP/1.1 2"), BROKEN),
    HostileAnswer("a status of five digits", Last(b"HTTP/1.1 99999 OK\r\n" + _CLOSE + _LENGTH + _END), _NO_SUCCESS),
    HostileAnswer("a status that is no number", Last(b"HTTP/1.1 abc OK\r\n" + _LENGTH + _END), MALFORMED),
    HostileAnswer("bytes before the response", Last(b"\x00\x01garbage\r\n" + ok()), MALFORMED),
    HostileAnswer("a TLS record", Last(b"\x15\x03\x03\x00\x02\x02\x28"), BROKEN),
    HostileAnswer("negative Content-Length", _lengths(b"-5"), MALFORMED),
    HostileAnswer("Content-Length of letters", _lengths(b"abc"), MALFORMED),
    HostileAnswer("Content-Length of 2^62", _lengths(b"%d" % 2**62), BROKEN),
    HostileAnswer("Content-Length of 30 digits", _lengths(b"9" * 30), BROKEN),
    HostileAnswer("Content-Length of 10,000 digits", _lengths(b"9" * 10_000), BROKEN),
    HostileAnswer("negative chunk size", Last(_CHUNKED + b"-5\r\nabcde\r\n0\r\n\r\n"), MALFORMED),
    HostileAnswer("chunk size of 30 digits", Last(_CHUNKED + b"f" * 30 + b"\r\nabcde\r\n0\r\n\r\n"), BROKEN),
    HostileAnswer("no last chunk", Last(_CHUNKED + b"5\r\nabcde\r\n"), BROKEN),
)
MAY_BE_FORGIVEN = (
    HostileAnswer("half a header", Last(_STATUS + b"Content-Le"), FORGIVEN),
    HostileAnswer("two Content-Lengths", _lengths(b"5", b"%d" % len(_BODY)), FORGIVEN),
    HostileAnswer("Content-Length beside chunks", Last(_CHUNKED[:-2] + _CLOSE + _LENGTH + _CHUNKS), FORGIVEN),
    HostileAnswer("a header of 1 MiB", _with(b"X-Long: " + _MIB, _LENGTH[:-2]), FORGIVEN),
    HostileAnswer("10,000 headers", _with(*(b"X-%d: y" % n for n in range(10_000)), _LENGTH[:-2]), FORGIVEN),
    HostileAnswer("header without a colon", _with(b"no colon", _LENGTH[:-2]), FORGIVEN),
    HostileAnswer("NUL in a header", _with(b"X-Nul: a\x00b", _LENGTH[:-2]), FORGIVEN),
    HostileAnswer("no gzip", _with(b"Content-Encoding: gzip", _LENGTH[:-2]), FORGIVEN),
    HostileAnswer("half a gzip", _with(b"Content-Encoding: gzip", b"Content-Length: 6", body=_GZIP), FORGIVEN),
    HostileAnswer("unknown transfer coding", _with(b"Transfer-Encoding: banana", _LENGTH[:-2]), FORGIVEN),
    HostileAnswer("switching protocols unasked", Last(b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n"), FORGIVEN),
    HostileAnswer("early hints, then nothing", Last(b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"), FORGIVEN),
    HostileAnswer("redirect to itself", _AWAY, FORGIVEN),
    HostileAnswer("two responses in one", ok() + ok(status="500 Unasked"), FORGIVEN),
)  # fmt: skip
ANSWERS = (*NOT_ANSWERS, *MAY_BE_FORGIVEN)
SOUND_FRAMES = frozenset({"no gzip", "half a gzip"})
"""Answers whose content is malformed, and not their frame: a client finds nothing wrong with their connection."""


ENDLESS = {
    "a body without an end": Endless(_STATUS + b"\r\n", _MIB),
    "chunks without an end": Endless(_CHUNKED, b"100000\r\n" + _MIB + b"\r\n"),
    "a body byte by byte": Endless(_STATUS + b"Content-Length: 1000000\r\n\r\n", b"x", 0.25),
    "headers byte by byte": Endless(_STATUS + b"X-Slow: ", b"x", 0.25),
    "headers without an end": Endless(_STATUS, b"X-More: yes\r\n" * 100, 0.01),
    "a header without an end": Endless(_STATUS + b"X-Long: ", b"x" * 1000, 0.01),
    "100 Continue without an end": Endless(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 100, 0.01),
}
