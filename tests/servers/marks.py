"""The marks of events, as a client reads them."""

from __future__ import annotations

import re
from typing import NamedTuple

_MARK = re.compile(rb"@(\d{6})(\d{18})(\d{6})")


class Mark(NamedTuple):
    """One mark: the event's number, the nanoseconds of its write, and the microseconds that the write was late."""

    number: int
    nanoseconds: int
    late: int

    @property
    def planned(self) -> float:
        """The planned moment, in seconds of the monotonic clock; up to a microsecond too late."""
        return self.nanoseconds / 1e9 - self.late / 1e6


def marks(body: bytes | str) -> list[Mark]:
    """Return all marks of a body, in their order. Fails if `@` is anywhere else."""
    data = body.encode() if isinstance(body, str) else body
    found = [Mark(*map(int, groups)) for groups in _MARK.findall(data)]
    assert data.count(b"@") == len(found)
    return found


def offsets(body: bytes | str) -> list[float]:
    """Return the planned moments in seconds after the first event's."""
    planned = [mark.planned for mark in marks(body)]
    return [moment - planned[0] for moment in planned]
