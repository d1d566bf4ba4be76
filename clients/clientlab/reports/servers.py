"""The table of servers: aiohttp and Flask under each server, and how much of the lead is kept connections.

A row compares two servers that differ in their framework only, or in which of them keeps connections as well. There is
no row in which only Flask keeps them, and none of an open load, in which both have the planned rate. A claim of the
experiment about the same two arms adds what its source published.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

from clientlab import units
from clientlab.errors import LabError
from clientlab.reports.charts.shapes import DataTable
from clientlab.reports.sections import Part, Report, Section, Tables
from clientlab.results.document import Run
from clientlab.results.figures import BY_KEY
from clientlab.results.trial import Trial
from clientlab.upstreams import Upstream, find

_HEADS = (
    "server", "connections kept by", "aiohttp", "Flask", "aiohttp ahead by", "kept alive: aiohttp", "Flask",
    "published",
)  # fmt: skip
TITLE = "Requests per second, by server"
_KEEPING = {(True, False): "aiohttp alone", (False, False): "neither", (True, True): "both"}


@dataclass(frozen=True)
class Served:
    """A framework under one server, measured by one strategy: medians over the rounds."""

    arm: str
    upstream: Upstream
    strategy: str
    requests_per_second: float | None
    kept_alive: float
    requests: float

    @property
    def keeps(self) -> bool:
        """Whether more than half of the requests left their connection open for the next."""
        return self.kept_alive > self.requests / 2

    @property
    def server(self) -> str:
        """The server, without its framework."""
        if self.upstream.development:
            return "development server"
        count = self.upstream.workers
        return "gunicorn" if count is None else f"gunicorn, {count} worker{'s' if count > 1 else ''}"


def servers(report: Report) -> Section[Part]:
    """The table of servers, in runs of an experiment that compares frameworks under them."""
    table = table_of(report.run)
    return Section("servers", TITLE, [Tables([table] if table.rows else [])], label="Servers", brief=True)


def table_of(run: Run) -> DataTable:
    """The table; without rows for a run without pairs of servers."""
    return DataTable(_HEADS, rows(run), TITLE, keys=2, texts=(7,), brief=(4, 2, 3, 7))


def rows(run: Run) -> list[tuple[str, ...]]:
    """The table's cells, first the rows in which aiohttp alone keeps connections; empty without pairs."""
    served = list(_served(run))
    pairs = [(mine, other) for mine, other in itertools.product(served, served) if _pair(mine, other)]
    pairs.sort(key=lambda pair: pair[0].strategy != pair[1].strategy)  # pairs with one strategy come first
    chosen: dict[tuple[tuple[bool, bool], str], tuple[Served, Served]] = {}
    for mine, other in pairs:
        chosen.setdefault(((mine.keeps, other.keeps), mine.server), (mine, other))
    servers = list(dict.fromkeys(one.server for one in served))
    return [
        _cells(*chosen[keeping, server], keepers, run)
        for keeping, keepers in _KEEPING.items()
        for server in servers
        if (keeping, server) in chosen
    ]


def _pair(mine: Served, other: Served) -> bool:
    return (mine.upstream.framework, other.upstream.framework, mine.server) == ("aiohttp", "flask", other.server)


def _cells(mine: Served, other: Served, keepers: str, run: Run) -> tuple[str, ...]:
    return (
        mine.server,
        keepers,
        units.rate(mine.requests_per_second),
        units.rate(other.requests_per_second),
        _ahead(mine.requests_per_second, other.requests_per_second),
        _kept(mine),
        _kept(other),
        _published(mine, other, run) or units.UNKNOWN,
    )


def _published(mine: Served, other: Served, run: Run) -> str | None:
    pair = (mine.arm, other.arm)
    return next((claim.published for claim in run.experiment.claims if (claim.a, claim.b) == pair), None)


def _ahead(mine: float | None, other: float | None) -> str:
    return units.UNKNOWN if mine is None or other is None else f"{100 * (mine / other - 1):+,.0f} %"


def _kept(one: Served) -> str:
    return f"{one.kept_alive:,.0f} of {one.requests:,.0f}"


def _served(run: Run) -> Iterator[Served]:
    """Every arm of an upstream with settings, in the experiment's order; none if workloads or routes differ."""
    special = [arm for arm in run.experiment.arms if _is_special(arm.upstream)]
    if len({(arm.workload, arm.route) for arm in special}) > 1:
        return
    for arm in special:
        trials = [trial for trial in run.trials_of(arm.name) if trial.status == "done"]
        trials = [trial for trial in trials if trial.open_load is None]
        kept = [count for trial in trials if (count := _kept_alive(trial)) is not None]
        if kept:
            yield Served(
                arm.name,
                find(arm.upstream),
                arm.strategy,
                BY_KEY["throughput"].over_rounds(trials),
                float(median(kept)),
                float(median(trial.requests for trial in trials)),
            )


def _kept_alive(trial: Trial) -> float | None:
    """As the driver reports; for others, every request but the first of a connection found it open. None: unknown."""
    if trial.kept_alive is not None or trial.connections_opened is None:
        return trial.kept_alive
    return trial.requests - trial.connections_opened


def _is_special(name: str) -> bool:
    """Whether it is an upstream of the lab's, and has settings."""
    try:
        return find(name).special
    except LabError:
        return False
