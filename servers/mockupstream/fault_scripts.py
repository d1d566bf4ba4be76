"""Answers with a fault as the bytes that are written, the pauses between them, and the end of the connection."""

from __future__ import annotations

import itertools
from http import HTTPStatus
from typing import TYPE_CHECKING, Literal, NamedTuple

from mockupstream.payloads import Piece

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from mockupstream.contract import Reply

Ending = Literal["keep", "close", "reset"]

_WITHOUT_LENGTH = frozenset({204, 304})
_HEAD_PARTS = 10
_NO_SIZE = b"zz\r\n"


class FaultScript(NamedTuple):
    """What is written in place of the framework's answer, each piece after its pause, and how the connection ends."""

    pieces: Iterable[Piece]
    ending: Ending


class _ScriptedAnswer(NamedTuple):
    """An answer as bytes: its headers, and its body in pieces, framed as the headers say."""

    head: bytes
    body: Iterator[Piece]

    def halves(self) -> tuple[bytes, bytes]:
        """Both halves of the body's first piece."""
        data = next(self.body, Piece(0.0, b"")).data
        return data[: len(data) // 2], data[len(data) // 2 :]


def script_of(reply: Reply, method: str, *, keeps: bool) -> FaultScript | None:
    """What is written for the reply's fault; None if the framework answers. `keeps`: the server keeps connections."""
    fault = reply.fault
    if fault is None or (acting := _ACTS.get(fault.kind)) is None:
        return None
    act, ends = acting
    ending: Ending = "close" if ends == "keep" and not keeps else ends
    announced = fault.kind == "close" or not keeps
    pieces = _pieces(reply) if method != "HEAD" else iter(())
    chunked = fault.kind == "bad-chunk" or (reply.pieces is not None and reply.length is None)
    if chunked and fault.kind != "bad-chunk" and method != "HEAD":
        pieces = itertools.chain((_chunk(piece) for piece in pieces if piece.data), (Piece(0.0, b"0\r\n\r\n"),))
    return FaultScript(
        act(_ScriptedAnswer(_head(reply, chunked=chunked, closes=announced), pieces), fault.value), ending
    )


def _pieces(reply: Reply) -> Iterator[Piece]:
    return iter((Piece(0.0, reply.body),) if reply.pieces is None else reply.pieces)


def _head(reply: Reply, *, chunked: bool, closes: bool) -> bytes:
    try:
        phrase = HTTPStatus(reply.status).phrase
    except ValueError:  # no standard status
        phrase = ""
    lines = [f"HTTP/1.1 {reply.status} {phrase}", *(f"{name}: {value}" for name, value in reply.headers)]
    length = len(reply.body) if reply.pieces is None else reply.length
    if reply.status not in _WITHOUT_LENGTH:
        lines.append("Transfer-Encoding: chunked" if chunked else f"Content-Length: {length}")
    lines += ["Connection: close"] if closes else []
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def _chunk(piece: Piece) -> Piece:
    return Piece(piece.pause, b"%x\r\n%b\r\n" % (len(piece.data), piece.data))


def _nothing(_answer: _ScriptedAnswer, _value: float) -> Iterator[Piece]:
    return iter(())


def _headers_alone(answer: _ScriptedAnswer, _value: float) -> Iterator[Piece]:
    yield Piece(0.0, answer.head)


def _half(answer: _ScriptedAnswer, _value: float) -> Iterator[Piece]:
    yield Piece(0.0, answer.head + answer.halves()[0])


def _bad_chunk(answer: _ScriptedAnswer, _value: float) -> Iterator[Piece]:
    half = answer.halves()[0]
    yield Piece(0.0, answer.head + (_chunk(Piece(0.0, half)).data if half else b"") + _NO_SIZE)


def _slow_headers(answer: _ScriptedAnswer, value: float) -> Iterator[Piece]:
    head = answer.head
    ends = [len(head) * (number + 1) // _HEAD_PARTS for number in range(_HEAD_PARTS)]
    for start, end in itertools.pairwise((0, *ends)):
        yield Piece(value / _HEAD_PARTS, head[start:end])
    yield from answer.body


def _bytewise(answer: _ScriptedAnswer, value: float) -> Iterator[Piece]:
    for piece in itertools.chain((Piece(0.0, answer.head),), answer.body):
        for number in range(len(piece.data)):
            yield Piece(value, piece.data[number : number + 1])


def _stall(answer: _ScriptedAnswer, value: float) -> Iterator[Piece]:
    yield Piece(value, answer.head)
    yield from answer.body


def _stall_body(answer: _ScriptedAnswer, value: float) -> Iterator[Piece]:
    first, rest = answer.halves()
    yield Piece(0.0, answer.head + first)
    yield Piece(value, rest)
    yield from answer.body


def _whole(answer: _ScriptedAnswer, _value: float) -> Iterator[Piece]:
    yield Piece(0.0, answer.head + next(answer.body, Piece(0.0, b"")).data)
    yield from answer.body


def _idle(answer: _ScriptedAnswer, value: float) -> Iterator[Piece]:
    yield from _whole(answer, value)
    yield Piece(value, b"")


_ACTS: dict[str, tuple[Callable[[_ScriptedAnswer, float], Iterable[Piece]], Ending]] = {
    "reset": (_nothing, "reset"),
    "reset-headers": (_headers_alone, "reset"),
    "reset-body": (_half, "reset"),
    "empty": (_nothing, "close"),
    "truncated": (_half, "close"),
    "bad-chunk": (_bad_chunk, "close"),
    "slow-headers": (_slow_headers, "keep"),
    "bytewise": (_bytewise, "keep"),
    "stall": (_stall, "keep"),
    "stall-body": (_stall_body, "keep"),
    "close": (_whole, "close"),
    "idle-close": (_idle, "close"),
}
"""What each kind of fault writes, and how the connection ends. The framework itself answers with a status."""
