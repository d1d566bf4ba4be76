"""Conditions of `--find-max`: figures of a trial, each with the value that it must stay below."""

from __future__ import annotations

import re
from dataclasses import dataclass

from clientlab.results.figures import FIGURES, Figure
from clientlab.statistics.histogram import FEWEST_REQUESTS
from clientlab.units import WRITTEN, wanted
from clientlab.workload.values import Written

_CONDITION = re.compile(r"(\w+)\s*<\s*(\d+(?:\.\d+)?)\s*([^\s\d]*)")

FIRST_RATE = 100.0
"""Requests per second. A search tries about this rate first."""

_USABLE = {
    name: figure
    for figure in FIGURES
    if figure.less_is_better and not figure.scheduled and not figure.total and not figure.needs
    for name in (figure.key, figure.name)
}
"""Key or full name → figure that can be a condition."""


@dataclass(frozen=True)
class Conditions(Written):
    """Conditions that must all hold: ``p99<250ms,errors<0.1%``. `limits` are in the units of the figures."""

    text: str
    limits: tuple[tuple[Figure, float], ...]

    @classmethod
    def parse(cls, text: str) -> Conditions:
        """Parse conditions. Raise ValueError that says what to write."""
        limits = []
        for part in text.split(","):
            match = _CONDITION.fullmatch(part.strip())
            if match is None:
                raise ValueError(f"{part!r}: write a figure and what it must stay below, as 'p99<250ms,errors<0.1%'")
            name, number, unit = match.groups()
            figure = _USABLE.get(name)
            if figure is None:
                known = ", ".join(dict.fromkeys(one.key for one in _USABLE.values()))
                raise ValueError(f"{name!r} is not one of {known}")
            if unit not in WRITTEN[figure.unit]:
                raise ValueError(f"{part!r}: {wanted(figure.unit, f'{name}<{number}')}")
            limits.append((figure, float(number) * WRITTEN[figure.unit][unit]))
        return cls(text, tuple(limits))

    def __str__(self) -> str:
        return self.text

    @property
    def fewest_requests(self) -> int:
        """The smallest number of requests with which a trial has every figure of the conditions."""
        # With fewer than 20, a single late one would decide.
        return max([20, *(FEWEST_REQUESTS.get(figure.key, 0) for figure, _ in self.limits)])
