"""The table of the article on frameworks: each way to serve, by aiohttp and by Flask, with what of it is connections.

A row holds two ways to serve that differ in their framework alone, or in who keeps connections as well. Where
Flask alone would keep them, there is no row.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import median

from clientlab.errors import LabError
from clientlab.reports import units
from clientlab.runs.document import Run, Trial
from clientlab.upstreams import Upstream, find

HEADS = (
    "server", "connections kept by", "aiohttp", "Flask", "aiohttp ahead by", "kept alive: aiohttp", "Flask",
    "article: aiohttp", "Flask", "ahead by",
)  # fmt: skip
LEFT = 2
"""Columns of words."""
TITLE = "Requests a second, by server"
_ARTICLE = {"development server": (2023, 722), "gunicorn, 1 worker": (2396, 1041), "gunicorn, 4 workers": (2542, 1729)}
"""Requests a second of aiohttp and of Flask (Stack Abuse, November 2018): Flask kept no connection, aiohttp all."""
_KEEPING = {(True, False): "aiohttp alone", (False, False): "neither", (True, True): "both"}


@dataclass(frozen=True)
class Served:
    """A framework under one server, asked in one way: medians over the rounds."""

    upstream: Upstream
    strategy: str
    requests_per_second: float
    kept_alive: float
    requests: float

    @property
    def keeps(self) -> bool:
        """Whether more than half of the requests left their connection for another."""
        return self.kept_alive > self.requests / 2

    @property
    def server(self) -> str:
        """What serves, without its framework."""
        if self.upstream.development:
            return "development server"
        count = self.upstream.workers
        return "gunicorn" if count is None else f"gunicorn, {count} worker{'s' if count > 1 else ''}"


def rows(run: Run) -> list[tuple[str, ...]]:
    """The table's cells under `HEADS`, the article's rows first; none of a run without such pairs of servers."""
    served = list(_served(run))
    pairs = [(mine, other) for mine, other in itertools.product(served, served) if _pair(mine, other)]
    pairs.sort(key=lambda pair: pair[0].strategy != pair[1].strategy)  # asked alike, where there is such a pair
    chosen: dict[tuple[tuple[bool, bool], str], tuple[Served, Served]] = {}
    for mine, other in pairs:
        chosen.setdefault(((mine.keeps, other.keeps), mine.server), (mine, other))
    places = list(dict.fromkeys(one.server for one in served))
    return [
        _cells(*chosen[keeping, server], says)
        for keeping, says in _KEEPING.items()
        for server in places
        if (keeping, server) in chosen
    ]


def _pair(mine: Served, other: Served) -> bool:
    return (mine.upstream.framework, other.upstream.framework, mine.server) == ("aiohttp", "flask", other.server)


def _cells(mine: Served, other: Served, says: str) -> tuple[str, ...]:
    published = _ARTICLE.get(mine.server) if (mine.keeps, other.keeps) == (True, False) else None
    return (
        mine.server,
        says,
        units.rate(mine.requests_per_second),
        units.rate(other.requests_per_second),
        _ahead(mine.requests_per_second, other.requests_per_second),
        _kept(mine),
        _kept(other),
        *([f"{rate:,}" for rate in published] if published else [units.NOTHING] * 2),
        _ahead(*published) if published else units.NOTHING,
    )


def _ahead(mine: float, other: float) -> str:
    return f"{100 * (mine / other - 1):+,.0f} %"


def _kept(one: Served) -> str:
    return f"{one.kept_alive:,.0f} of {one.requests:,.0f}"


def _served(run: Run) -> Iterator[Served]:
    """Every arm of an upstream with settings, in the experiment's order; none where the work or the way differs."""
    special = [arm for arm in run.experiment.arms if _is_special(arm.upstream)]
    if len({(arm.workload, arm.route) for arm in special}) > 1:
        return
    for arm in special:
        trials = [trial for trial in run.trials if trial.arm == arm.name and trial.status == "done"]
        if trials:
            yield Served(
                find(arm.upstream),
                arm.strategy,
                _median(trials, lambda trial: trial.requests_per_second or 0.0),
                _median(trials, _kept_alive),
                _median(trials, lambda trial: float(trial.requests)),
            )


def _kept_alive(trial: Trial) -> float:
    """As the driver tells; of others each request but the first of a connection found it kept."""
    if trial.kept_alive is not None:
        return float(trial.kept_alive)
    return float(trial.requests - (trial.connections_opened or 0))


def _median(trials: list[Trial], figure: Callable[[Trial], float]) -> float:
    return float(median(map(figure, trials)))


def _is_special(name: str) -> bool:
    """Whether it is an upstream of the lab's, and has settings."""
    try:
        return find(name).special
    except LabError:
        return False
