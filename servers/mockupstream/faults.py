"""Faults: what an upstream does wrong on purpose with the answer to one request (`?fault=stall=2s`).

Grammar: KIND or KIND=VALUE. The lab has the same kinds; a test compares both. A request with an identity
(`?request=`) can have one for each of its attempts, with commas between them (`none,reset,none`).

    status=CODE[@TIME]    another status, 400 to 599 (503); with a TIME, in whole seconds, a header Retry-After
    reset                 the connection is reset before the answer
    reset-headers         it is reset after the headers
    reset-body            it is reset after half of the body
    empty                 it is closed before the answer
    truncated             it is closed after half of the body
    bad-chunk             half of the body arrives as a chunk, and then a chunk without a size
    slow-headers=TIME     the headers arrive in ten parts within this time (1s)
    bytewise=TIME         each byte arrives alone, after this pause (1ms)
    stall=TIME            the answer begins after this time (60s)
    stall-body=TIME       half of the body arrives, and the rest after this time (60s)
    close                 the connection is closed after the answer, whose headers say so
    idle-close=TIME       it is closed this time after the answer (0s), which does not say so
"""

from __future__ import annotations

from typing import NamedTuple

from mockupstream.delays import seconds

NONE = "none"
"""Among the faults of several attempts: this one has none."""

_FIRST_STATUS, _LAST_STATUS = 400, 599


class MadeFault(NamedTuple):
    """A fault of one answer. `value`: seconds, of a status the code. `retry_after`: whole seconds of a status."""

    kind: str
    value: float = 0.0
    retry_after: int | None = None

    @property
    def number(self) -> int:
        """The place of its kind among all kinds."""
        return _NUMBERS[self.kind]

    @property
    def seconds(self) -> float:
        """How long the fault lasts on purpose."""
        return 0.0 if self.kind == "status" else self.value


class MadeKind(NamedTuple):
    """A kind of fault. `default`: its value; None: it has none. `needs_body`: it shows in a body alone."""

    default: float | None = None
    needs_body: bool = False


def parse(text: str) -> MadeFault:
    """Read a fault. Raises ValueError with the kinds there are."""
    kind, equals, value = text.partition("=")
    found = KINDS.get(kind)
    if found is None:
        msg = f"{text!r} is not a fault; write {', '.join(KINDS)}"
        raise ValueError(msg)
    if kind == "status":
        return _status(value) if equals else MadeFault(kind, found.default or 0.0)
    if not equals:
        return MadeFault(kind, found.default or 0.0)
    if found.default is None:
        msg = f"fault {kind} has no value; write {kind} alone"
        raise ValueError(msg)
    return MadeFault(kind, seconds(value))


def needs_body(fault: MadeFault) -> bool:
    """Whether the fault shows in the body of an answer alone."""
    return KINDS[fault.kind].needs_body


def _status(text: str) -> MadeFault:
    code, at, time = text.partition("@")
    if not (code.isascii() and code.isdigit() and len(code) == 3 and _FIRST_STATUS <= int(code) <= _LAST_STATUS):
        msg = f"fault status={text}: write a status from {_FIRST_STATUS} to {_LAST_STATUS}, as status=503"
        raise ValueError(msg)
    after = seconds(time) if at else None
    if after is not None and after != int(after):
        msg = f"fault status={text}: Retry-After is in whole seconds; write status={code}@{int(after) + 1}s"
        raise ValueError(msg)
    return MadeFault("status", float(code), None if after is None else int(after))


KINDS = {
    "status": MadeKind(503.0),
    "reset": MadeKind(),
    "reset-headers": MadeKind(needs_body=True),
    "reset-body": MadeKind(needs_body=True),
    "empty": MadeKind(),
    "truncated": MadeKind(needs_body=True),
    "bad-chunk": MadeKind(needs_body=True),
    "slow-headers": MadeKind(1.0),
    "bytewise": MadeKind(0.001),
    "stall": MadeKind(60.0),
    "stall-body": MadeKind(60.0, needs_body=True),
    "close": MadeKind(),
    "idle-close": MadeKind(0.0),
}
"""Kinds of fault. Their order is that of the counters."""

_NUMBERS = {kind: number for number, kind in enumerate(KINDS)}
