"""Common situations, and what the run of the atlas answers: sentences whose figures and names all come from the run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from clientlab import units
from clientlab.analysis.ratios import paired_ratio
from clientlab.judging.changes import simultaneous
from clientlab.reports.rows import Row
from clientlab.results.figure_definition import Figure
from clientlab.results.figures import BY_KEY, cost_of
from clientlab.strategies import CLIENTS, STRATEGIES
from findings.contest import Contest, contest, costs_of, listed, named, times

Tables = dict[str, dict[str, Row]]
"""Workload → strategy → its arm."""

_CPU, _MEMORY, _CONNECTIONS = BY_KEY["cpu"], BY_KEY["memory"], BY_KEY["connections"]
_LEAST_CPU, _LEAST_MEMORY = "took the least CPU time per request", "held the least memory"
_ALONE, _THREADS, _TASKS = ("serial", "await"), ("threads",), ("workers", "trio")


@dataclass(frozen=True)
class Situation:
    """`workload`: whose table the answer reads first. `answer`: sentences, of all tables."""

    title: str
    workload: str
    answer: Callable[[Tables], Iterable[str]]


def rows_of(tables: Tables, workload: str, executors: Iterable[str], http: str = "1.1") -> list[Row]:
    """The arms of one client with one executor each: no traps, and no second name of the same pair."""
    found = []
    for name, row in tables.get(workload, {}).items():
        strategy = STRATEGIES.get(name)
        if strategy is None or strategy.source != "ecosystem" or strategy.executor not in executors:
            continue
        own_name = name.partition("@")[0].removesuffix("-uvloop") == strategy.client
        if own_name and CLIENTS[strategy.client].http == http:
            found.append(row)
    return found


def _script(tables: Tables) -> Iterator[str]:
    rows = rows_of(tables, "json", ("serial",))
    yield _fastest(rows, "One request after the other")
    yield _slower(rows)
    yield _least(rows, _MEMORY, _LEAST_MEMORY)


def _threads(tables: Tables) -> Iterator[str]:
    rows = rows_of(tables, "delay", _THREADS)
    yield _fastest(rows, "In threads")
    yield _slower(rows)
    yield _least(rows, _CPU, _LEAST_CPU)


def _asyncio(tables: Tables) -> Iterator[str]:
    rows = rows_of(tables, "many", _TASKS)
    yield _fastest(rows, "In tasks")
    yield _slower(rows)
    yield _least(rows, _CPU, _LEAST_CPU)


def _downloads(tables: Tables) -> Iterator[str]:
    yield _fastest(rows_of(tables, "body", _THREADS), "In threads")
    yield _fastest(rows_of(tables, "body", _TASKS), "In tasks")
    yield _least(rows_of(tables, "body", (*_THREADS, *_TASKS)), _MEMORY, _LEAST_MEMORY)


def _per_call(tables: Tables) -> Iterator[str]:
    yield _fastest(rows_of(tables, "per-call", ("serial",)), "Of blocking clients")
    yield _fastest(rows_of(tables, "per-call", ("await",)), "Of asyncio clients")
    yield _least(rows_of(tables, "per-call", _ALONE), _CPU, _LEAST_CPU)


def _http2(tables: Tables) -> Iterator[str]:
    rows = rows_of(tables, "http2", (*_THREADS, *_TASKS), http="2")
    yield _fastest(rows, "Over HTTP/2")
    yield _beside_http1(tables, rows)
    yield _connections(rows)


def _cpu_bill(tables: Tables) -> Iterator[str]:
    for workload, executors, where in (
        ("json", _ALONE, "One request after the other"),
        ("delay", _THREADS, "In threads that wait for a server"),
        ("many", _TASKS, "In tasks that wait for a server"),
    ):
        yield _least(rows_of(tables, workload, executors), _CPU, _LEAST_CPU, where)


SITUATIONS = (
    Situation("A script that makes a few calls one after another", "json", _script),
    Situation("Threads in a Flask or Django service", "delay", _threads),
    Situation("An asyncio service with hundreds of requests in flight", "many", _asyncio),
    Situation("Many large downloads", "body", _downloads),
    Situation("A call now and then: a connection for each request over TLS", "per-call", _per_call),
    Situation("HTTP/2", "http2", _http2),
    Situation("The lowest CPU bill", "delay", _cpu_bill),
)

_MOST_NAMED = 5
"""More ties are counted, and not named: the table below has them all."""
_NONE = "the run has no finished trial of such a strategy."


def _fastest(rows: list[Row], where: str) -> str:
    """Who made the most requests per second."""
    found = contest(rows, cost_of)
    if found is None:
        return f"{where}: {_NONE}"
    rate = units.rate(found.least.figures["throughput"])
    rest = _rest(found, "slower", "were measurably slower")
    return f"{where}, {named([found.least])} made the most requests per second, {rate}{rest}."


def _slower(rows: list[Row]) -> str:
    """Who surely takes longer than the fastest; empty if nobody does."""
    found = contest(rows, cost_of)
    if found is None or not found.more:
        return ""
    if len(found.more) == 1:
        return f"One was measurably slower, and took {times(found.more[0])} as long."
    first, last = times(found.more[0]), times(found.more[-1])
    return f"{len(found.more)} of {len(rows)} were measurably slower: they took from {first} to {last} as long."


def _least(rows: list[Row], figure: Figure, what: str, where: str = "") -> str:
    """Who has the least of a figure, and who the most."""
    found = contest(rows, figure.of)
    if found is None:
        return f"{where or figure.title}: {_NONE}"
    value = figure.text(found.least.figures[figure.key])
    most = f"; the most, {times(found.more[-1])} as much" if len(found.more) > 1 else ""
    rest = _rest(found, "more", "needed measurably more")
    return f"{f'{where}, ' if where else ''}{named([found.least])} {what}, {value}{rest}{most}."


def _rest(found: Contest, how: str, all_others: str) -> str:
    """Who cannot be told from the least arm."""
    if len(found.ties) > _MOST_NAMED and not found.more:
        return f"; none of the {len(found.ties)} others was measurably {how}"
    if len(found.ties) > _MOST_NAMED:
        return f"; {len(found.ties)} of the {len(found.ties) + len(found.more)} others were not measurably {how}"
    if found.ties:
        return f"; not measurably {how}: {named(found.ties)}"
    count = "both" if len(found.more) == 2 else f"all {len(found.more)}"
    return f"; {count} others {all_others}" if len(found.more) > 1 else ""


def _beside_http1(tables: Tables, rows: list[Row]) -> str:
    """Ratios of time per request, HTTP/2 over HTTP/1.1 of the same library, with intervals that hold together."""
    by_name = tables.get("http2", {})
    pairs = [(row, by_name[name]) for row in rows if (name := row.strategy.replace("-h2", "")) in by_name]
    ratios = [(row, paired_ratio(costs_of(row), costs_of(other), simultaneous(len(pairs)))) for row, other in pairs]
    parts: dict[str, list[str]] = {"measurably more": [], "measurably less": [], "not measurably different": []}
    for row, ratio in ratios:
        if ratio is None:
            continue
        low, high = ratio.interval or (0.0, float("inf"))
        side = "measurably more" if low > 1 else "measurably less" if high < 1 else "not measurably different"
        parts[side].append(f"{named([row])} ({units.ratio_of(ratio)} times)")
    found = "; ".join(f"{side} with {listed(names)}" for side, names in parts.items() if names)
    if not found:
        return f"HTTP/1.1: {_NONE}"
    return f"Beside HTTP/1.1 of the same library, the time of a request over HTTP/2 is {found}."


def _connections(rows: list[Row]) -> str:
    """How many connections the arms opened."""
    counts: dict[str, list[Row]] = {}
    for row in sorted(rows, key=lambda row: row.figures["connections"] or 0.0):
        counts.setdefault(_CONNECTIONS.text(row.figures["connections"]), []).append(row)
    found = "; ".join(f"{count} by {named(group)}" for count, group in counts.items())
    return f"Connections opened: {found}." if found else f"Connections opened: {_NONE}"
