"""The conditions of `--find-max`: figures of a trial, and what each must stay below."""

from __future__ import annotations

import re
from dataclasses import dataclass

from clientlab.analysis.latencies import FEWEST_REQUESTS
from clientlab.results.figure_definition import Figure
from clientlab.results.figures import FIGURES
from clientlab.units import WRITTEN, wanted
from clientlab.workload.written import Written

_CONDITION = re.compile(r"(\w+)\s*<\s*(\d+(?:\.\d+)?)\s*([^\s\d]*)")

FIRST_RATE = 100.0
"""Requests per second: about the rate that a search tries first."""

_FEWEST = 20
"""With fewer requests in a trial, one late request decides whether it holds its rate."""

_USABLE = {
    name: figure
    for figure in FIGURES
    if figure.less_is_better and not figure.scheduled and not figure.total and not figure.needs
    for name in (figure.key, figure.name)
}
"""Key and full name of the figures that can be a condition."""


@dataclass(frozen=True)
class Conditions(Written):
    """Conditions that all have to hold: ``p99<250ms,errors<0.1%``. `limits`: in the units of the figures."""

    text: str
    limits: tuple[tuple[Figure, float], ...]

    @classmethod
    def parse(cls, text: str) -> Conditions:
        """Return the conditions of a text. Raise ValueError for anything else."""
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
        """The number of requests with which a trial has every figure of the conditions."""
        return max([_FEWEST, *(FEWEST_REQUESTS.get(figure.key, 0) for figure, _ in self.limits)])
