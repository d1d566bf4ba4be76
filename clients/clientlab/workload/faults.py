"""Faults of a workload: what the upstream, or the link, does wrong on purpose, to which share of the requests.

    reset:10%                    the upstream resets the connection of one request in ten, before the answer
    status=503@2s:5%,stall=2s:1% several, with values; no request has more than one
    outage=5s@10s                the link is down for 5 s, from 10 s after the beginning of the trial

Which fault request k has is a function of (seed, k), as its delay is: so all arms of a round meet the same faults.
The client asks for it in the query (``fault=reset``), and the upstream makes it. Faults of the link hit connections.
The grammar of a fault without its share is that of the upstreams; a test compares both.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from clientlab import units
from clientlab.errors import LabError
from clientlab.workload.delays import seconds, share
from clientlab.workload.fault_kinds import KINDS, FaultKind, Maker
from clientlab.workload.written import Written

NONE = "none"
"""A workload without faults, as a value of an axis."""

FORMS = "'reset:10%', 'status=503:5%' or 'reset:10%,stall=2s:1%'"
_STREAM, _CONNECTIONS = 3, 4
"""Delays are drawn from stream 0, recorded requests from stream 1, arrivals from stream 2: faults are independent."""

_LATER_ATTEMPTS = 100
"""The stream of attempt j of a request, from the second on, is j more. Without retries there is only the first."""

_SHARE = re.compile(r"(\d{1,3}(?:\.\d{0,9})?|\.\d{1,9})(%|)", re.ASCII)
_ROUNDING = 1e-12
_MOST_SECONDS = 3600.0
_MOST_BYTES = 1 << 40


@dataclass(frozen=True)
class WantedFault:
    """A kind with its value, as it was written, and the share of the requests, or of connections, that have it.

    An outage has no share: 0.
    """

    kind: FaultKind
    value: str
    share: float

    @property
    def text(self) -> str:
        """Without its share, as the upstream reads it."""
        return f"{self.kind.name}={self.value}" if self.value else self.kind.name

    @property
    def seconds(self) -> float:
        """How long it lasts on purpose; 0 for one that takes no time."""
        return seconds(self.value or self.kind.default) if self.kind.value == "time" else 0.0

    def __str__(self) -> str:
        return f"{self.text}:{100 * self.share:.10g}%" if self.share else self.text


@dataclass(frozen=True)
class Faults(Written):
    """Faults with their shares, in the order in which they were written."""

    each: tuple[WantedFault, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Faults:
        """The faults of a text. Raises ValueError with the kinds there are."""
        if text.strip() == NONE:
            return cls()
        found = cls(tuple(_fault(part.strip()) for part in text.split(",")))
        texts = [fault.text for fault in found.each]
        if len(set(texts)) < len(texts):
            raise ValueError(f"{text!r} has one fault twice; write it once, with the sum of both shares")
        for maker in ("upstream", "link"):
            if (total := sum(fault.share for fault in found.of(maker).each)) > 1 + _ROUNDING:
                whole = "requests" if maker == "upstream" else "connections"
                raise ValueError(
                    f"{text!r}: the shares add up to {100 * total:g} %; write 100 % of the {whole} at most"
                )
        return found

    def __str__(self) -> str:
        return ",".join(map(str, self.each)) or NONE

    def of(self, maker: Maker) -> Faults:
        """Those that the upstream, or the link, makes."""
        return Faults(tuple(fault for fault in self.each if fault.kind.maker == maker))

    def of_connections(self, seed: int) -> Callable[[int], WantedFault | None]:
        """A function from the number of a connection in a trial to the fault that the link makes under `seed`."""
        return self._drawn(tuple(fault for fault in self.of("link").each if fault.share), seed, _CONNECTIONS)

    def at(self, seed: int) -> Callable[[int], WantedFault | None]:
        """A function from the number of a request to the fault that the upstream makes under `seed`.

        Requests of a warm-up, whose numbers are below 0, have none.
        """
        return self._drawn(self.of("upstream").each, seed, _STREAM)

    def of_attempts(self, seed: int, attempts: int) -> Callable[[int], tuple[WantedFault | None, ...]]:
        """A function from the number of a request to the faults of its attempts, the first that of `at`."""
        made, first = self.of("upstream").each, self.at(seed)
        later = [self._drawn(made, seed, _LATER_ATTEMPTS + attempt) for attempt in range(2, attempts + 1)]
        return lambda number: (first(number), *(drawn(number) for drawn in later))

    @staticmethod
    def _drawn(made: Sequence[WantedFault], seed: int, stream: int) -> Callable[[int], WantedFault | None]:
        ends = list(accumulate(fault.share for fault in made))

        def drawn(number: int) -> WantedFault | None:
            place = bisect_right(ends, share(seed, number, stream))
            return made[place] if place < len(made) and number >= 0 else None

        return drawn

    def mean_seconds(self, timeout: float) -> float:
        """How long a request waits for its fault, on average, if its client gives up after `timeout` seconds."""
        return sum(fault.share * min(fault.seconds, timeout) for fault in self.each)


def check_maker(faults: Faults, where: str) -> None:
    """Raises LabError for a fault that only the lab's own upstreams make, with those that go with any server."""
    for fault in faults.of("upstream").each:
        others = ", ".join(name for name, kind in KINDS.items() if kind.maker == "link")
        raise LabError(f"{where} {fault.text}: only the lab's own upstreams make it; with any server go {others}")


def _fault(text: str) -> WantedFault:
    """A fault with its share. Raises ValueError."""
    head, colon, rest = text.rpartition(":")
    name, equals, value = (head if colon else text).partition("=")
    kind = KINDS.get(name)
    if kind is None:
        from clientlab.nearest import nearest  # noqa: PLC0415 - measured processes need no difflib

        raise ValueError(f"{text!r}: there is no fault {name!r}{nearest(name, KINDS)}; there are {', '.join(KINDS)}")
    if equals and not kind.value:
        raise ValueError(f"{text!r}: fault {name} has no value; write {name}:10%")
    if kind.value == "outage":
        _check_value(kind, text.partition("=")[2], text)
        return WantedFault(kind, text.partition("=")[2], 0.0)
    if not colon:
        raise ValueError(f"{text!r} has no share; write {text}:10%")
    if equals or not kind.default:
        _check_value(kind, value, text)
    return WantedFault(kind, value, _share(rest, text))


def _share(text: str, whole: str) -> float:
    found = _SHARE.fullmatch(text.strip())
    value = float(found[1]) / (100 if found[2] else 1) if found else 0.0
    if not 0 < value <= 1:
        raise ValueError(f"{whole!r}: {text!r} is not a share; write more than 0 % to 100 %, as in {FORMS}")
    return value


def _check_value(kind: FaultKind, value: str, text: str) -> None:
    """Raises ValueError for a value that the kind cannot have."""
    try:
        _VALUES[kind.value](value)
    except ValueError as error:
        raise ValueError(f"{text!r}: {error}") from error


def _none(_value: str) -> None:
    """A kind without a value."""


def _status(value: str) -> None:
    code, at, time = value.partition("@")
    if not re.fullmatch(r"[45]\d\d", code, re.ASCII):
        raise ValueError(f"{code!r} is not a status of an error; write 400 to 599, as status=503:10%")
    if at and not _time(time).is_integer():
        raise ValueError(f"Retry-After is in whole seconds; write status={code}@{int(seconds(time)) + 1}s")


def _time(value: str) -> float:
    found = seconds(value)
    if found > _MOST_SECONDS:
        raise ValueError(f"{value} is longer than a fault can be; write at most {_MOST_SECONDS:.0f}s")
    return found


def _bytes(value: str) -> None:
    found = units.bytes_of(value, unit="B")
    if not 0 < found <= _MOST_BYTES:
        raise ValueError(f"{value}: write 1B to {_MOST_BYTES >> 40}TiB")


def _outage(value: str) -> None:
    length, at, moment = value.partition("@")
    if not at:
        raise ValueError("write its length and its moment, as outage=5s@10s")
    if not _time(length):
        raise ValueError("an outage takes some time; write more than 0s")
    _time(moment)


_VALUES: dict[str, Callable[[str], object]] = {
    "": _none, "status": _status, "time": _time, "bytes": _bytes, "outage": _outage,
}  # fmt: skip
