"""Requests that their caller gives up: which share of them, when, and in which way.

    10%              one request in ten, at a moment within one and a half times the mean delay of the upstream
    10%@0ms-50ms     at a moment from 0 to 50 ms after the send
    10%,double       with a second cancellation while the client handles the first one

Whether request k is cancelled, when and how are functions of (seed, k), as its delay is: equal for all arms of a round.
Half of them end by a time limit of the caller (`asyncio.timeout`), the others by `task.cancel()`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from clientlab.errors import FieldError
from clientlab.workload.delays import seconds, share, time_text
from clientlab.workload.written import Written

CancelWay = Literal["timeout", "task"]

NONE = "none"
"""A workload whose requests nobody cancels, as a value of an axis."""

FORMS = "10%, 10%@0ms-50ms or 10%,double"
DOUBLE = "double"

_CHOICE, _WAY, _MOMENT = 5, 6, 7
"""Streams of random numbers. Those below are of delays, recorded requests, arrivals and faults."""

_SHARE = re.compile(r"(\d{1,3}(?:\.\d{0,9})?|\.\d{1,9})%", re.ASCII)
_MOST_SECONDS = 3600.0
_BEYOND = 1.5
"""The usual window ends so many mean delays after the send: some moments fall behind the headers."""
_WITHOUT_DELAY = 0.005
"""Seconds of the usual window of a workload without a delay."""


@dataclass(frozen=True)
class Cancellation:
    """One request's: `after` so many seconds, in this way."""

    after: float
    way: CancelWay


@dataclass(frozen=True)
class Cancels(Written):
    """The share of the requests, and the window of moments after the send in seconds; None: by the delay."""

    share: float = 0.0
    window: tuple[float, float] | None = None
    double: bool = False

    @classmethod
    def parse(cls, text: str) -> Cancels:
        """Read a text. Raises ValueError with the forms there are."""
        if text.strip() == NONE:
            return cls()
        head, comma, option = text.partition(",")
        if comma and option.strip() != DOUBLE:
            raise ValueError(f"{text!r}: {option.strip()!r} is no option; write {FORMS}")
        amount, at, window = head.partition("@")
        found = _SHARE.fullmatch(amount.strip())
        value = float(found[1]) / 100 if found else 0.0
        if not 0 < value <= 1:
            raise ValueError(f"{amount.strip()!r} is not a share; write more than 0% to 100%, as in {FORMS}")
        return cls(value, _window(window, text) if at else None, bool(comma))

    def __str__(self) -> str:
        if not self.share:
            return NONE
        window = "" if self.window is None else "@" + "-".join(map(time_text, self.window))
        return f"{100 * self.share:.10g}%{window}{',' + DOUBLE if self.double else ''}"

    def at(self, seed: int, expected: float) -> Callable[[int], Cancellation | None]:
        """A function from the number of a request to its cancellation; None for one that nobody cancels.

        `expected`: mean seconds that the upstream takes. Requests of a warm-up, whose numbers are below 0, have none.
        """
        first, last = self.window or (0.0, _BEYOND * expected or _WITHOUT_DELAY)

        def drawn(number: int) -> Cancellation | None:
            if number < 0 or share(seed, number, _CHOICE) >= self.share:
                return None
            after = first + (last - first) * share(seed, number, _MOMENT)
            return Cancellation(after, "timeout" if share(seed, number, _WAY) < 1 / 2 else "task")

        return drawn


def check_cancels(cancels: Cancels | None, *, cold: bool, is_open: bool, shards: int) -> None:
    """Raises FieldError for a workload whose requests cannot be cancelled."""
    if cancels is None or not cancels.share:
        return
    message = ""
    if cold:
        message, other = "what it leaves is examined behind warm connections; leave out `connections`", "connections"
    elif is_open:
        message, other = "it goes with a closed load; leave out its rate", "rate"
    elif shards > 1:
        message, other = "it goes with one process; leave out `shards`", "shards"
    if message:
        raise FieldError(["cancel"], message, value=str(cancels), also=[other])


def _window(text: str, whole: str) -> tuple[float, float]:
    first, dash, last = text.partition("-")
    if not dash:
        raise ValueError(f"{whole!r}: write the first and the last moment, as 10%@0ms-50ms")
    found = seconds(first), seconds(last)
    if not found[0] <= found[1] <= _MOST_SECONDS or not found[1]:
        raise ValueError(f"{whole!r}: the window begins before it ends, at most {_MOST_SECONDS:.0f}s after the send")
    return found
