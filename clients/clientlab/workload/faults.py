"""What the upstream does instead of a good answer, as users write it.

    STATUS:SHARE[,after=TIME]   ``503:5%``, ``429:10%,after=1s`` (Retry-After)
    reset:SHARE                 the connection is reset before anything is done
    close:SHARE                 the work is done, and the connection closed
    truncate:SHARE              half of the body, and the connection closed
    stall:SHARE                 the work is done, and no byte sent
    slow:SHARE,over=TIME        the body drips over this time
    garbage:SHARE               bytes that are no HTTP
    outage:TIME..TIME           every attempt is reset in this part of the trial
    slow:TIME..TIME,+TIME       the delay is longer in this part
    limit:RATE                  a token bucket; beyond it, 429 with Retry-After

Several are joined by semicolons. Shares are of attempts. The upstream draws for each
attempt of a call from the seed of the round, the number of the call and that of the
attempt (mockupstream.faults), so all arms of a round meet the same faults.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from clientlab.workload.values import (
    Written,
    find_time_without_unit,
    parse_rate,
    parse_time,
    write_time,
)

_DRAWN = ("reset", "close", "truncate", "stall", "slow", "garbage")
_OF_STREAMS = frozenset({"reset", "stall", "outage"})
_FORMS = (
    "503:5%, 429:10%,after=1s, reset:1%, close:1%, truncate:1%, stall:1%,"
    " slow:1%,over=2s, garbage:1%, outage:2s..5s, slow:3s..6s,+200ms or limit:100/s"
)
_STATUS = re.compile(r"[45]\d\d", re.ASCII)
_SHARE = re.compile(r"(\d{1,3}(?:\.\d{0,6})?|\.\d{1,6})\s*(%?)", re.ASCII)


@dataclass(frozen=True)
class DrawnFault:
    """A fault of a share of the attempts.

    `kind`: a status, or a word. `seconds`: of Retry-After, or of a slow body.
    """

    kind: str
    share: float
    seconds: float | None = None

    def __str__(self) -> str:
        text = f"{self.kind}:{self.share * 100:.10g}%"
        if self.seconds is None:
            return text
        return f"{text},{self._option}={write_time(self.seconds)}"

    @property
    def wire(self) -> str:
        """The fault as the upstream reads it: numbers in seconds."""
        text = f"{self.kind}:{self.share:.10g}"
        if self.seconds is None:
            return text
        return f"{text},{self._option}={self.seconds:.12g}"

    @property
    def _option(self) -> str:
        return "over" if self.kind == "slow" else "after"


@dataclass(frozen=True)
class State:
    """What all attempts meet from `begin` to `end`, in seconds of the measured time.

    `kind`: ``outage`` or ``slow``. `delay`: the seconds that the latter adds.
    """

    kind: str
    begin: float
    end: float
    delay: float = 0.0

    def __str__(self) -> str:
        text = f"{self.kind}:{write_time(self.begin)}..{write_time(self.end)}"
        return f"{text},+{write_time(self.delay)}" if self.kind == "slow" else text

    @property
    def wire(self) -> str:
        """The state as the upstream reads it: numbers in seconds."""
        text = f"{self.kind}:{self.begin:.12g}..{self.end:.12g}"
        return f"{text},{self.delay:.12g}" if self.kind == "slow" else text


@dataclass(frozen=True)
class Faults(Written):
    """Everything that goes wrong in a trial. `limit`: attempts per second."""

    drawn: tuple[DrawnFault, ...] = ()
    states: tuple[State, ...] = ()
    limit: float | None = None

    @classmethod
    def parse(cls, text: str) -> Faults:
        drawn: list[DrawnFault] = []
        states: list[State] = []
        limit = None
        for part in filter(None, (part.strip() for part in text.split(";"))):
            kind, colon, rest = part.partition(":")
            if not colon:
                raise _unknown(part)
            if kind == "limit":
                if limit is not None:
                    raise ValueError(f"{part!r}: there is one limit already")
                limit = parse_rate(rest)
            elif ".." in rest:
                states.append(_parse_state(part, kind, rest))
            else:
                drawn.append(_parse_drawn(part, kind, rest))
        if not drawn and not states and limit is None:
            raise _unknown(text)
        whole = sum(fault.share for fault in drawn)
        if whole > 1 + 1e-9:
            raise ValueError(
                f"the shares are {whole * 100:.4g} % together; write at most 100 %"
            )
        return cls(tuple(drawn), tuple(states), limit)

    def __str__(self) -> str:
        parts = [*map(str, self.drawn), *map(str, self.states)]
        if self.limit is not None:
            parts.append(f"limit:{self.limit:.12g}/s")
        return "; ".join(parts)

    @property
    def wire(self) -> str:
        """All faults as the upstream reads them (mockupstream.faults)."""
        parts = [fault.wire for fault in self.drawn]
        parts += [state.wire for state in self.states]
        if self.limit is not None:
            parts.append(f"limit:{self.limit:.12g}")
        return ";".join(parts)

    @property
    def longest(self) -> float:
        """The most seconds that a fault adds to an attempt, or to the wait after it."""
        seconds = [fault.seconds or 0.0 for fault in self.drawn]
        seconds += [state.delay for state in self.states]
        return max(seconds, default=0.0)

    @property
    def not_of_streams(self) -> str | None:
        """The first fault that makes no sense for a stream of events, or None."""
        kinds = [fault.kind for fault in self.drawn]
        kinds += [state.kind for state in self.states]
        if self.limit is not None:
            kinds.append("limit")
        return next((kind for kind in kinds if kind not in _OF_STREAMS), None)


def _unknown(text: str) -> ValueError:
    return ValueError(f"{text!r} is not a fault; write {_FORMS}")


def _parse_drawn(part: str, kind: str, rest: str) -> DrawnFault:
    share_text, comma, option = (text.strip() for text in rest.partition(","))
    is_status = _STATUS.fullmatch(kind) is not None
    if not is_status and kind not in _DRAWN:
        raise _unknown(part)
    share = _parse_share(part, share_text)
    if kind == "slow":
        if not option.startswith("over="):
            raise ValueError(f"{part!r}: over which time? write slow:1%,over=2s")
        return DrawnFault(kind, share, _parse_seconds(part, option[5:]))
    if not comma:
        return DrawnFault(kind, share)
    if not is_status or not option.startswith("after="):
        raise _unknown(part)
    seconds = _parse_seconds(part, option[6:])
    if seconds != int(seconds):
        raise ValueError(f"{part!r}: Retry-After counts whole seconds; write after=1s")
    return DrawnFault(kind, share, seconds)


def _parse_state(part: str, kind: str, rest: str) -> State:
    if kind not in {"outage", "slow"}:
        raise _unknown(part)
    times, comma, delay = (text.strip() for text in rest.partition(","))
    begin, _, end = times.partition("..")
    state = State(kind, _parse_seconds(part, begin), _parse_seconds(part, end))
    if state.begin >= state.end:
        raise ValueError(f"{part!r}: it ends before it begins; write outage:2s..5s")
    if kind == "outage":
        if comma:
            raise _unknown(part)
        return state
    if not delay.startswith("+"):
        raise ValueError(f"{part!r}: how slow? write slow:3s..6s,+200ms")
    return State(kind, state.begin, state.end, _parse_seconds(part, delay[1:]))


def _parse_share(part: str, text: str) -> float:
    match = _SHARE.fullmatch(text)
    if match is None:
        raise ValueError(f"{part!r}: {text!r} is not a share; write 5%")
    share = float(match[1]) / (100 if match[2] else 1)
    if not 0 < share <= 1:
        raise ValueError(f"{part!r}: a share is above 0 %, and at most 100 %")
    return share


def _parse_seconds(part: str, text: str) -> float:
    bare = find_time_without_unit(text)
    if bare and float(bare):
        raise ValueError(f"{part!r}: {bare} has no unit; write {bare}s")
    return parse_time(text)
