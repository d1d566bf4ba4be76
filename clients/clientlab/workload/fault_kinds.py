"""The kinds of fault that an upstream, or the link, makes on purpose; docs/faults.md has them as a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Maker = Literal["upstream", "link"]
ValueForm = Literal["", "status", "time", "bytes", "outage"]

_FORMS: dict[ValueForm, str] = {
    "": "", "status": "=CODE[@TIME]", "time": "=TIME", "bytes": "=BYTES", "outage": "=TIME@TIME",
}  # fmt: skip


@dataclass(frozen=True)
class FaultKind:
    """A kind of fault. `value`: what it may be followed by; `default`: if it is not. `meaning`: what happens.

    `spoils`: a client that reports success has not noticed it. `needs_body`: it shows in the body of an answer alone.
    """

    name: str
    maker: Maker
    meaning: str
    value: ValueForm = ""
    default: str = ""
    spoils: bool = False
    needs_body: bool = False

    @property
    def form(self) -> str:
        """How it is written, without the share."""
        return self.name + _FORMS[self.value]


def _spoils(name: str, meaning: str, *, needs_body: bool = False) -> FaultKind:
    return FaultKind(name, "upstream", meaning, spoils=True, needs_body=needs_body)


def _slow(name: str, default: str, meaning: str, *, needs_body: bool = False) -> FaultKind:
    return FaultKind(name, "upstream", meaning, "time", default, needs_body=needs_body)


_STATUS = "another status, 400 to 599; the answer's body stays. `@TIME`, in whole seconds, adds `Retry-After`"
_OUTAGE = "for the first time, from the second one of the trial on: connections are reset, new ones are refused"

_KINDS = (
    FaultKind("status", "upstream", _STATUS, "status", "503", spoils=True),
    _spoils("reset", "the connection is reset before the answer"),
    _spoils("reset-headers", "the connection is reset after the headers", needs_body=True),
    _spoils("reset-body", "the connection is reset after half of the body", needs_body=True),
    _spoils("empty", "the connection is closed before the answer"),
    _spoils("truncated", "the connection is closed after half of the body", needs_body=True),
    _spoils("bad-chunk", "half of the body arrives as a chunk, then a chunk without a size", needs_body=True),
    _slow("slow-headers", "1s", "the headers arrive in ten parts within this time"),
    _slow("bytewise", "1ms", "each byte of the answer arrives alone, after this pause"),
    _slow("stall", "60s", "the answer begins after this time"),
    _slow("stall-body", "60s", "half of the body arrives, and the rest after this time", needs_body=True),
    FaultKind("close", "upstream", "the connection is closed after the answer, whose headers say so"),
    _slow("idle-close", "0s", "the connection is closed this time after the answer, which does not say so"),
    FaultKind("refuse", "link", "the connection is reset as soon as it was accepted", spoils=True),
    FaultKind("blackhole", "link", "the connection is accepted, and nothing is answered", spoils=True),
    FaultKind("reset-after", "link", "the connection is reset after so many bytes to the client", "bytes", spoils=True),
    FaultKind("slice", "link", "bytes to the client arrive in slices of this size, a millisecond apart", "bytes"),
    FaultKind("outage", "link", _OUTAGE, "outage", spoils=True),
)

KINDS = {kind.name: kind for kind in _KINDS}
"""By name. The upstream counts those that it makes in this order."""
