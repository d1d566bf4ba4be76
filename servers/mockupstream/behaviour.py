"""The behaviour of one request: its query parameters override the defaults, within the
limits.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import parse_qsl

from mockupstream import delays
from mockupstream.refusals import RefusedError, whole_number
from mockupstream.settings import Settings

_REMEMBERED = 4096
FIRST_STATUS, LAST_STATUS = 200, 599
_OF_THE_LAB = re.compile(r"(?:^|.*&)delay=(\d+\.\d{6})(?:&call=-?\d+)?", re.DOTALL)
"""A query with the delay that the lab adds at its end (clientlab.workload.requests)."""


class Wait(NamedTuple):
    """The delay of one request: `seconds`, and the value of the Server-
    Timing header.
    """

    seconds: float
    header: str


@dataclass(frozen=True, slots=True)
class Behaviour:
    """The parameters of one query, the first of each name.

    `wait`: None if it must be drawn for each request.
    """

    delay: delays.ParsedDelay
    wait: Wait | None
    status: int | None
    seed: int | None
    parameters: Mapping[str, str]


class BehaviourReader:
    """Parses raw query strings (without the `?`) and draws their delays."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._source = random.Random()  # noqa: S311
        # Equal query strings have equal behaviour, so parsing usually takes one
        # look-up.
        self.read: Callable[[str], Behaviour] = lru_cache(maxsize=_REMEMBERED)(
            self._read
        )

    def wait(self, behaviour: Behaviour) -> Wait:
        """Return the delay of a request.

        Raise RefusedError (400) if the draw is beyond the limit.
        """
        return behaviour.wait or self.draw(behaviour.delay, None)

    def draw(self, delay: delays.ParsedDelay, seed: int | None) -> Wait:
        """Draw from `delay`, with `seed` if given.

        Raise RefusedError (400) beyond the limit.
        """
        limit = self._settings.most_delay
        limit.check(delay.stated, f"a delay of {delay}")
        seconds = delay.draw(self._source if seed is None else random.Random(seed))  # noqa: S311
        limit.check(seconds, f"a delay of {seconds:.6g} s, as drawn from {delay},")
        # `dur` of Server-Timing is in milliseconds; three decimals are a microsecond.
        return Wait(seconds, f"delay;dur={round(seconds * 1000, 3)}")

    def _read(self, query: str) -> Behaviour:
        parameters = (
            dict(reversed(parse_qsl(query, keep_blank_values=True))) if query else {}
        )
        settings = self._settings
        if (
            settings.any_path
        ):  # all else is meant for the server whose requests were recorded
            lab = _OF_THE_LAB.fullmatch(query)
            parameters = {"delay": lab[1]} if lab else {}
        delay = (
            read_delay(parameters["delay"]) if "delay" in parameters else settings.delay
        )
        status = read_status(parameters["status"]) if "status" in parameters else None
        seed = (
            whole_number(parameters["seed"], "seed", 0)
            if "seed" in parameters
            else None
        )
        settled = seed is not None or delay.is_fixed
        wait = self.draw(delay, seed) if settled else None
        return Behaviour(delay, wait, status, seed, parameters)


def read_delay(text: str) -> delays.ParsedDelay:
    """Parse the delay of a request. Raise RefusedError (400) for an invalid one."""
    try:
        return delays.parse(text)
    except ValueError as error:
        raise RefusedError(400, f"delay: {error}") from error


def read_status(text: str) -> int:
    """Parse a final status (200 to 599). Raise RefusedError (400) otherwise."""
    status = whole_number(text, "status", FIRST_STATUS)
    if status > LAST_STATUS:
        raise RefusedError(
            400, f"status must be from {FIRST_STATUS} to {LAST_STATUS}, not {status}"
        )
    return status
