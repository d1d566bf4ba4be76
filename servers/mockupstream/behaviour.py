"""The behaviour of one request: its query parameters, over the defaults and within the limits."""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import parse_qsl

from mockupstream import delays, faults
from mockupstream.refusals import RefusedError, whole_number

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mockupstream.settings import Settings

# A load test repeats few queries, or uses each only once. The cache serves the first without growing with the second.
_REMEMBERED = 4096
FIRST_STATUS, LAST_STATUS = 200, 599
_IDENTITY_DIGITS = 16


class Wait(NamedTuple):
    """The delay of one request: `seconds`, and `told`, the value of the Server-Timing header."""

    seconds: float
    told: str


@dataclass(frozen=True, slots=True)
class Behaviour:
    """The parameters of one query.

    `wait` is None where it must be drawn for each request; `parameters` are all parameters of the query, the first of
    each name. `attempt_faults`: of the attempts of a request, in their order. `request`: its identity, by which its
    attempts are counted.
    """

    delay: delays.ParsedDelay
    wait: Wait | None
    status: int | None
    seed: int | None
    parameters: Mapping[str, str]
    attempt_faults: tuple[faults.MadeFault | None, ...] = ()
    request: int | None = None

    def fault(self, attempt: int) -> faults.MadeFault | None:
        """The fault of this attempt, from 1; those beyond the written ones have none."""
        return self.attempt_faults[attempt - 1] if attempt <= len(self.attempt_faults) else None


class BehaviourReader:
    """Parses raw query strings (without the `?`) and draws their delays."""

    def __init__(self, settings: Settings) -> None:
        """Take the defaults and the limits. Delays without a seed are drawn from an own random source."""
        self._settings = settings
        self._source = random.Random()  # noqa: S311
        # Equal query strings have equal behaviour, so on the hot path parsing is one look-up.
        self.read: Callable[[str], Behaviour] = lru_cache(maxsize=_REMEMBERED)(self._read)

    def wait(self, behaviour: Behaviour) -> Wait:
        """Return the delay of this request. Raises RefusedError (400) if the draw is beyond the limit."""
        return behaviour.wait or self.draw(behaviour.delay, None)

    def draw(self, delay: delays.ParsedDelay, seed: int | None) -> Wait:
        """Draw from `delay`, with `seed` if given. Raises RefusedError (400) beyond the limit, never a silent cap."""
        limit = self._settings.most_delay
        limit.check(delay.stated, f"a delay of {delay}")
        source = self._source if seed is None or isinstance(delay, delays.Fixed) else random.Random(seed)  # noqa: S311
        seconds = delay.draw(source)
        limit.check(seconds, f"a delay of {seconds:.6g} s, as drawn from {delay},")
        # `dur` of Server-Timing is in milliseconds; three decimals are a microsecond.
        return Wait(seconds, f"delay;dur={round(seconds * 1000, 3)}")

    def _read(self, query: str) -> Behaviour:
        parameters = dict(reversed(parse_qsl(query, keep_blank_values=True))) if query else {}
        settings = self._settings
        delay = read_delay(parameters["delay"]) if "delay" in parameters else settings.delay
        status = read_status(parameters["status"]) if "status" in parameters else settings.status
        seed = whole_number(parameters["seed"], "seed", 0) if "seed" in parameters else settings.seed
        settled = seed is not None or isinstance(delay, delays.Fixed)
        wait = self.draw(delay, seed) if settled else None
        request = read_identity(parameters["request"]) if "request" in parameters else None
        made = self._faults(parameters["fault"], request) if "fault" in parameters else ()
        return Behaviour(delay, wait, status, seed, parameters, made, request)

    def _faults(self, text: str, request: int | None) -> tuple[faults.MadeFault | None, ...]:
        """Parse the faults of the attempts. Raises RefusedError (400) if nobody can count the attempts."""
        parts = text.split(",")
        if request is None and (len(parts) > 1 or text == faults.NONE):
            raise RefusedError(400, "fault: faults of several attempts need request, the identity of the request")
        return tuple(None if part == faults.NONE else self._fault(part) for part in parts)

    def _fault(self, text: str) -> faults.MadeFault:
        """Parse a fault. Raises RefusedError (400) for an invalid one, and for one that would last too long."""
        try:
            fault = faults.parse(text)
        except ValueError as error:
            raise RefusedError(400, f"fault: {error}") from error
        if "=" not in text:  # the default is no longer than the limit
            return fault._replace(value=min(fault.value, self._settings.most_delay.value)) if fault.seconds else fault
        self._settings.most_delay.check(fault.seconds, f"a fault of {fault.seconds:.6g} s")
        return fault


def read_delay(text: str, name: str = "delay") -> delays.ParsedDelay:
    """Parse a delay of a request. Raises RefusedError (400) with the `name` of its parameter for an invalid one."""
    try:
        return delays.parse(text)
    except ValueError as error:
        raise RefusedError(400, f"{name}: {error}") from error


def read_identity(text: str) -> int:
    """Parse the identity of a request: 16 hexadecimal digits. Raises RefusedError (400) otherwise."""
    if len(text) != _IDENTITY_DIGITS or not set(text) <= set("0123456789abcdef"):
        raise RefusedError(400, f"request must have {_IDENTITY_DIGITS} hexadecimal digits, not {text!r}")
    return int(text, 16)


def read_status(text: str) -> int:
    """Parse a final status (200 to 599). Raises RefusedError (400) otherwise."""
    status = whole_number(text, "status", FIRST_STATUS)
    if status > LAST_STATUS:
        raise RefusedError(400, f"status must be from {FIRST_STATUS} to {LAST_STATUS}, not {status}")
    return status
