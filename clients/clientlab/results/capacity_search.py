"""The search for capacities: which rates it tries, and the conditions under which a strategy holds a rate."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from clientlab.analysis.latencies import FEWEST_REQUESTS
from clientlab.bounded_numbers import Portion, Positive, Rate
from clientlab.results.figure_definition import Figure
from clientlab.results.figures import FIGURES
from clientlab.results.part import MeasuredPart
from clientlab.units import WRITTEN, wanted
from clientlab.workload.arrivals import rate_of
from clientlab.workload.delays import seconds
from clientlab.workload.written import ParsedBy, Written

DEFAULT_SECONDS = 5.0
"""Length of each trial of a search, where the command line names none."""

FEWEST_OF_PROBE = 20
"""Requests. With fewer, one late request in a trial decides whether it held its rate."""

MOST_OVERLOAD = 10.0
"""Times the capacity."""

FORMS = "'p99<250ms,errors<0.1%'"
_CONDITION = re.compile(r"\s*(\w+)\s*([<>]=?)\s*(\d+(?:\.\d+)?)\s*([^\s\d]*)\s*")


@dataclass(frozen=True)
class Condition:
    """A figure of a trial that must be less than `limit`, in the figure's unit. `text`: as the user wrote it."""

    text: str
    figure: Figure
    limit: float


_USABLE = {
    name: figure
    for figure in FIGURES
    if figure.less_is_better and not figure.scheduled and not figure.total and not figure.needs
    for name in (figure.key, figure.name)
}
"""Key and full name of the figures that can be a condition. Those of rates are none: the search chooses the rate."""


@dataclass(frozen=True)
class Conditions(Written):
    """Conditions that all have to hold: ``p99<250ms,errors<0.1%``."""

    each: tuple[Condition, ...]

    @classmethod
    def parse(cls, text: str) -> Conditions:
        """The conditions of a text. Raises ValueError for a text that is no such list."""
        found = tuple(map(_condition, text.split(",")))
        keys = [one.figure.key for one in found]
        twice = next((key for key in keys if keys.count(key) > 1), None)
        if twice is not None:
            raise ValueError(f"{twice} has two limits in {text!r}; name each figure once")
        return cls(found)

    def __str__(self) -> str:
        return ",".join(one.text for one in self.each)


def _condition(text: str) -> Condition:
    match = _CONDITION.fullmatch(text)
    if match is None:
        raise ValueError(f"{text.strip()!r} is not a condition; write a figure and what it must stay below, as {FORMS}")
    name, sign, number, unit = match.groups()
    figure = _USABLE.get(name)
    if figure is None:
        raise ValueError(f"{name!r} is not one of {', '.join(dict.fromkeys(one.key for one in _USABLE.values()))}")
    sizes = WRITTEN[figure.unit]
    if sign != "<":
        raise ValueError(f"{text.strip()!r}: a strategy holds a rate while {name} is low; write {name}<{number}{unit}")
    if unit not in sizes:
        raise ValueError(f"{text.strip()!r}: {wanted(figure.unit, f'{name}<{number}')}")
    limit = float(number) * sizes[unit]
    if not limit:
        raise ValueError(f"{text.strip()!r}: nothing is less than 0; write a limit above 0")
    return Condition(text.strip(), figure, limit)


class CapacitySearch(MeasuredPart):
    """What a search for capacities tries, and which rate counts as held.

    A strategy holds a uniform rate if, in a trial at that rate, each of the `conditions` holds, the trial sent at least
    the share `achieved` of the planned rate, and its backlog did not grow (`judging.probes`).
    """

    conditions: Annotated[Conditions, Field(description="figures and what each must stay below")]
    start: Annotated[Rate, ParsedBy(rate_of), Field(description="requests per second that are tried first")] = 100.0
    resolution: Annotated[
        float, Field(ge=0.005, le=1, description="the search ends when held and not held rate are this close, a share")
    ] = 0.025
    tries: Annotated[
        int, Field(ge=1, le=10, description="trials that must agree before a rate counts as held or as not held")
    ] = 2
    most_probes: Annotated[int, Field(ge=1, le=1000, description="of an arm in a round")] = 40
    most_seconds: Annotated[
        Positive,
        ParsedBy(seconds),
        Field(description="wall time of an arm's probes in a round, after which none is begun"),
    ] = 600.0
    achieved: Annotated[Portion, Field(description="share of the planned rate that a trial must send to hold it")] = (
        0.95
    )
    equal_load: Annotated[
        Portion, Field(description="share of the smallest capacity, at which all arms are compared")
    ] = 0.5

    overload: Annotated[
        tuple[Annotated[float, Field(gt=1, le=MOST_OVERLOAD)], ...],
        Field(description="shares of its capacity at which each arm is overloaded, in trials of their own"),
    ] = ()

    def fewest_requests(self) -> int:
        """Of a trial in which every figure of the conditions is known."""
        needed = (FEWEST_REQUESTS.get(one.figure.key, 0) for one in self.conditions.each)
        return max([FEWEST_OF_PROBE, *needed])
