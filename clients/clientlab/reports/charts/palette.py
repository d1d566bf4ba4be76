"""One look for each strategy, the same in reports and on dashboards: a colour, and a dash where colours are equal."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from dataclasses import dataclass

from clientlab.results.document import Run


@dataclass(frozen=True)
class Hue:
    """One colour in three forms: on a light ground, on a dark one, and on either. `strategies` always have it."""

    light: str
    dark: str
    either: str
    strategies: frozenset[str]


def _hue(light: str, dark: str, either: str, strategies: str) -> Hue:
    return Hue(light, dark, either, frozenset(strategies.split()))


# Okabe and Ito's palette (jfly.uni-koeln.de/color), which colour-blind people can tell apart. Violet replaces yellow,
# which white swallows, and grey its black. `light` and `dark` have a contrast of 3 with their ground.
# The strategies of one bundled experiment have different hues. A strategy in no list has a hue by its name.
HUES = (
    _hue("#0072b2", "#3f9fe0", "#0072B2", "requests sync ab httpx2-client requests@threads"),
    _hue("#d55e00", "#f07a3c", "#D55E00",
         "requests-session@processes sync_multiprocess aiohttp@gather httpx-async@gather httpx"),
    _hue("#009e73", "#16b98c", "#009E73",
         "requests-session sync_threads aiohttp@semaphore httpx-async-h2@workers urllib3@threads"),
    _hue("#b8628f", "#dd97bf", "#CC79A7",
         "httpx-async@workers async_threads requests-session@futures aiohttp@unbounded httpx2 aiohttp-per-call"),
    _hue("#b97f00", "#e69f00", "#E69F00", "requests-session@threads requests-session@queue httpx-client"),
    _hue("#2f93cf", "#8fd0f5", "#56B4E9",
         "aiohttp@workers aiohttp async_with_async_client httpx-async@semaphore httpx2-async-h2@workers"),
    _hue("#6b7280", "#9aa3ae", "#8C8C8C", "pycurl pycurl@multi async_multiprocess_with_async_client"),
    _hue("#5b3df0", "#8f7bff", "#7C5CFF",
         "pycurl@threads requests-session@sync_to_async aiohttp-uvloop@semaphore aiohttp-uvloop@workers pycurl-h2"),
)  # fmt: skip
DASHES: tuple[tuple[int, ...], ...] = ((), (8, 4), (2, 4), (10, 4, 2, 4), (4, 3))
"""Lengths of strokes and gaps; the first line has no gap."""


@dataclass(frozen=True)
class Look:
    """Places of a hue and of a dash in the lists above."""

    colour: int = 0
    dash: int = 0

    @property
    def names(self) -> str:
        """Classes of the page's style sheet."""
        return f"c{self.colour} d{self.dash}"


NEUTRAL = Look(6)
"""Grey, for what is no strategy."""


def colour_of(strategy: str) -> int:
    """The place of the strategy's hue. Settings change no colour: ``NAME?pool=8`` has the hue of ``NAME``.

    A name in no list has a hue by its checksum, so that a new strategy changes the colour of no other.
    """
    name = _without_settings(strategy)
    listed = (place for place, hue in enumerate(HUES) if name in hue.strategies)
    return next(listed, zlib.crc32(name.encode()) % len(HUES))


def looks_of(run: Run) -> dict[str, Look]:
    """Strategy → look. Strategies of the run with one colour have different dashes, in the experiment's order."""
    strategies = dict.fromkeys([arm.strategy for arm in run.experiment.arms] + [trial.strategy for trial in run.trials])
    names = list(dict.fromkeys(map(_without_settings, strategies)))
    looks = dict(zip(names, distinct(Look(colour_of(name)) for name in names), strict=True))
    return {strategy: looks[_without_settings(strategy)] for strategy in strategies}


def distinct(looks: Iterable[Look]) -> list[Look]:
    """The looks of one chart: where the same comes again, with its colour and another dash."""
    seen: dict[Look, int] = {}
    found = []
    for look in looks:
        times = seen.setdefault(look, 0)
        found.append(Look(look.colour, (look.dash + times) % len(DASHES)))
        seen[look] += 1
    return found


def _without_settings(strategy: str) -> str:
    return strategy.partition("?")[0]
