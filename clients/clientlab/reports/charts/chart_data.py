"""The data that charts draw: groups of arms, and one look for each strategy, the same wherever it is shown."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from clientlab.analysis.histogram import Distribution, decoded
from clientlab.analysis.latencies import Latencies, latencies_of
from clientlab.reports.rows import WAITS, Group, Row, groups_of
from clientlab.results.document import Run
from clientlab.results.times import Histogram
from clientlab.results.trial import Trial


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
         "httpx-async@workers async_threads requests-session@futures requests-session@gevent aiohttp@unbounded httpx2 "
         "aiohttp-per-call"),
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
    """Positions of a hue and of a dash in the lists above."""

    colour: int = 0
    dash: int = 0

    @property
    def names(self) -> str:
        """Classes of the page's style sheet."""
        return f"c{self.colour} d{self.dash}"


NEUTRAL = Look(6)
"""Grey, for what is no strategy."""


def colour_of(strategy: str) -> int:
    """The position of the strategy's hue. Settings change no colour: ``NAME?pool=8`` has the hue of ``NAME``.

    A name in no list has a hue by its checksum, so that a new strategy changes the colour of no other.
    """
    name = _without_settings(strategy)
    listed = (index for index, hue in enumerate(HUES) if name in hue.strategies)
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


MOST_LINES = 8
"""Arms that are drawn in colour in one chart of lines. Further arms are grey."""


@dataclass(frozen=True)
class ChartArm:
    """An arm with its look. `name`: within its group, with its concurrency where arms of the group differ in it."""

    name: str
    row: Row
    look: Look

    @property
    def trials(self) -> tuple[Trial, ...]:
        """The finished trials, by round."""
        return self.row.trials

    @cached_property
    def latencies(self) -> list[Latencies]:
        """Those of each round that had a successful request, and whose histogram is known."""
        return [
            latencies_of(answered, failed, sum(trial.errors.values()))
            for trial in self.trials
            for answered in _decoded(trial.histogram)
            for failed in [_decoded(trial.failed_histogram)]
        ]


def notes_of_waits(arms: Iterable[ChartArm]) -> list[str]:
    """What the mark of latencies means, where an arm has it."""
    return [f"{WAITS} holds the wait for a free connection."] if any(arm.row.waits for arm in arms) else []


@dataclass(frozen=True)
class ChartGroup(Group):
    """The arms of a group with their looks, the fastest first. `delay`: the requested delays of the upstream."""

    arms: list[ChartArm] = field(default_factory=list)
    delay: str | None = None


def chart_groups(run: Run) -> list[ChartGroup]:
    """All groups of a run that have a finished trial, in the experiment's order."""
    looks = looks_of(run)
    return [ChartGroup(**vars(group), arms=_arms(group, looks), delay=_delay(run, group)) for group in groups_of(run)]


def coloured_and_grey(arms: Sequence[ChartArm]) -> tuple[list[ChartArm], list[ChartArm]]:
    """The arms that a chart of lines draws in colour, and those that it draws in grey."""
    return list(arms[:MOST_LINES]), list(arms[MOST_LINES:])


def _decoded(histogram: Histogram | None) -> list[Distribution]:
    """The distribution, unless it is unknown or empty."""
    found = [] if histogram is None else [decoded(histogram.encoded, histogram.unit_seconds)]
    return [one for one in found if one.total]


def _arms(group: Group, looks: dict[str, Look]) -> list[ChartArm]:
    styles = distinct(looks[row.trials[0].strategy] for row in group.rows)
    return [ChartArm(group.name_of(row), row, look) for row, look in zip(group.rows, styles, strict=True)]


def _delay(run: Run, group: Group) -> str | None:
    workloads = {trial.workload for row in group.rows for trial in row.trials}
    delays = [delay for name in workloads if (delay := run.experiment.workloads[name].delay) is not None]
    return " or ".join(sorted(set(map(str, delays)))) or None
