"""Common situations, and what the run of the atlas answers: a sentence, a picture and a table, all from the run."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from clientlab import units
from clientlab.analysis.decisions import EQUAL_SHARE, decision_of
from clientlab.analysis.ratios import CONFIDENCE, Ratio
from clientlab.analysis.simultaneous import paired_ratios
from clientlab.reports.charts.chart_data import NEUTRAL, Look, looks_of
from clientlab.reports.charts.forest import Entry, forest
from clientlab.reports.charts.shapes import BarChart
from clientlab.reports.rows import Row, groups_of
from clientlab.results.document import Run
from clientlab.results.figures import BY_KEY, cost_of
from clientlab.strategies import CLIENTS, STRATEGIES
from findings.contest import Contest, Rival, as_shown, contest, costs_of, named

Tables = dict[str, dict[str, Row]]
"""Workload → strategy → its arm."""

MOST_SHOWN = 10
"""Strategies in the table of a situation. The map has all."""

_MOST_NAMED = 5
"""More are counted, and not named: the table has them."""

_CPU = BY_KEY["cpu"]
_ALONE, _AWAITED, _THREADS, _TASKS = ("serial",), ("await",), ("threads",), ("workers", "trio")


@dataclass(frozen=True)
class Situation:
    """What a reader has: arms of a workload with certain executors. `http`: the version that they speak.

    `by`: what decides; "versions" compares HTTP/2 with HTTP/1.1 of the same library. `title`: None for a situation
    that only the chooser has.
    """

    key: str
    workload: str
    executors: tuple[str, ...]
    title: str | None = None
    http: str = "1.1"
    by: Literal["time", "cpu", "versions"] = "time"

    @property
    def blocking(self) -> bool:
        """Whether it is blocking code; else asyncio."""
        return self.executors in {_ALONE, _THREADS}


SITUATIONS = (
    Situation("script", "json", _ALONE, "A script that makes one call after another"),
    Situation("awaited", "json", _AWAITED),
    Situation("quick-threads", "json", _THREADS),
    Situation("quick-tasks", "json", _TASKS),
    Situation("threads", "delay", _THREADS, "Threads in a Flask or Django service"),
    Situation("tasks", "delay", _TASKS),
    Situation("many-tasks", "many", _TASKS, "An asyncio service with hundreds of requests in flight"),
    Situation("download", "body", _ALONE),
    Situation("awaited-download", "body", _AWAITED),
    Situation("downloads-in-threads", "body", _THREADS, "Large downloads in threads"),
    Situation("downloads-in-tasks", "body", _TASKS, "Large downloads in asyncio"),
    Situation("call-now-and-then", "per-call", _ALONE, "A call now and then: a connection for each request over TLS"),
    Situation("awaited-now-and-then", "per-call", _AWAITED, "The same in asyncio"),
    Situation("tls", "http2", _ALONE),
    Situation("awaited-tls", "http2", _AWAITED),
    Situation("tls-threads", "http2", _THREADS),
    Situation("tls-tasks", "http2", _TASKS),
    Situation("http2", "http2", _ALONE, http="2"),
    Situation("awaited-http2", "http2", _AWAITED, http="2"),
    Situation("http2-threads", "http2", _THREADS, http="2"),
    Situation("http2-tasks", "http2", _TASKS, http="2"),
    Situation("http2-or-http1", "http2", (*_THREADS, *_TASKS), "HTTP/2 or HTTP/1.1", http="2", by="versions"),
    Situation("cpu-threads", "delay", _THREADS, "The lowest CPU bill in threads", by="cpu"),
    Situation("cpu-tasks", "many", _TASKS, "The lowest CPU bill in asyncio", by="cpu"),
)


@dataclass(frozen=True)
class SituationAnswer:
    """What the run says. `cells`: of the table, a row each under `heads`; `left`: strategies that it has no room for.

    `chart`: the ratios of the same rows; None where there is nothing to compare. `command`: measures the same against
    one's own server.
    """

    situation: Situation
    sentence: str
    heads: tuple[str, ...]
    cells: list[list[str]]
    left: int
    chart: BarChart | None
    command: str
    concurrency: int | None
    decided: tuple[int, int]
    """How many comparisons are decided, and of how many."""


def tables_of(run: Run) -> Tables:
    """The arms of a run."""
    return {group.key.workload: {row.strategy: row for row in group.rows} for group in groups_of(run)}


def answers(run: Run) -> list[SituationAnswer]:
    """For each situation, in their order."""
    tables, looks = tables_of(run), looks_of(run)
    return [
        _versions(one, tables, looks) if one.by == "versions" else _ranked(one, tables, looks) for one in SITUATIONS
    ]


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


def _ranked(situation: Situation, tables: Tables, looks: dict[str, Look]) -> SituationAnswer:
    rows = rows_of(tables, situation.workload, situation.executors, situation.http)
    figure = _CPU.of if situation.by == "cpu" else cost_of
    found = contest(rows, figure)
    axis = "CPU time per request" if situation.by == "cpu" else "time per request"
    words: dict[str, str] = {"slower": "more", "faster": "less"} if situation.by == "cpu" else {}
    heads = ("strategy", "decision", f"{axis} (95 %)", "requests/s", "CPU/request", "memory (PSS)")
    if found is None:
        return SituationAnswer(situation, _NONE, heads, [], 0, None, "", None, (0, 0))
    shown = found.others[: MOST_SHOWN - 1]
    first = "least" if situation.by == "cpu" else "fastest"
    cells = [
        [_name(found.least), first, "1", *_figures(found.least)],
        *([_name(one.row), words.get(one.word, one.word), one.quoted, *_figures(one.row)] for one in shown),
    ]
    entries = [
        Entry(found.least.strategy, _look(looks, found.least.strategy), 1.0, None, "", first=True),
        *(entry for one in shown if (entry := _entry(one, looks, words.get(one.word, one.word)))),
    ]
    chart = forest(axis.capitalize(), entries, f"times that of {found.least.strategy} (logarithmic)")
    names = [found.least.strategy, *(one.row.strategy for one in shown if not one.row.errors)]
    decided = sum(one.word != "undecided" for one in found.others)
    return SituationAnswer(
        situation, _sentence(situation, found), heads, cells, len(found.others) - len(shown),
        chart if len(entries) > 1 else None, _command(names[:4], found.least, situation), found.least.concurrency,
        (decided, len(found.others)),
    )  # fmt: skip


_NONE = "The run has no finished trial of such a strategy."


def _entry(one: Rival, looks: dict[str, Look], word: str) -> Entry | None:
    """The row of the picture; None without a ratio."""
    if one.ratio is None:
        return None
    quoted = "" if one.quoted == units.UNKNOWN else one.quoted
    look = _look(looks, one.row.strategy)
    return Entry(one.row.strategy, look, one.ratio.value, one.ratio.interval, word, quoted=quoted)


def _look(looks: dict[str, Look], strategy: str) -> Look:
    return looks.get(strategy, NEUTRAL)


def _name(row: Row) -> str:
    return f"{row.strategy} (!)" if row.doubtful or row.errors else row.strategy


def _figures(row: Row) -> list[str]:
    return [row.text(BY_KEY[key]) for key in ("throughput", "cpu", "memory")]


def _sentence(situation: Situation, found: Contest) -> str:
    """Who is the first, and who is equal, undecided or slower."""
    least, count = found.least, len(found.others) + 1
    if situation.by == "cpu":
        start = f"{named([least])} needs the least CPU time of {count}, {_CPU.text(least.figures['cpu'])} a request"
    else:
        rate = units.rate(least.figures["throughput"])
        start = f"{named([least])} is the fastest of {count}, with {rate} requests per second"
    parts = [start]
    if equal := [one.row for one in found.of("equal")]:
        parts.append(f"{_some(equal)} {'is' if len(equal) == 1 else 'are'} equal within {EQUAL_SHARE}")
    if undecided := [one.row for one in found.of("undecided")]:
        parts.append(f"{_some(undecided)} {'is' if len(undecided) == 1 else 'are'} undecided")
    if slower := found.of("slower"):
        parts.append(_slower(slower, *(("need", "as much") if situation.by == "cpu" else ("take", "as long"))))
    return f"{'; '.join(parts)}."


def _some(rows: Sequence[Row]) -> str:
    return named(rows) if len(rows) <= _MOST_NAMED else f"{len(rows)} others"


def _slower(slower: Sequence[Rival], verb: str, much: str) -> str:
    """Between which ratios the slower ones lie, each with its interval, or at least how many times as much."""
    first, last = slower[0], slower[-1]
    if len(slower) == 1:
        return f"{named([first.row])} {verb}s {first.quoted} times {much}"
    count = f"the {len(slower)} slower ones" if verb == "take" else f"{len(slower)} others"
    ends = f"from {first.quoted} times ({named([first.row])}) to {last.quoted} times ({named([last.row])})"
    return f"{count} {verb} {ends} {much}"


def _versions(situation: Situation, tables: Tables, looks: dict[str, Look]) -> SituationAnswer:
    """Ratios of time per request, HTTP/2 over HTTP/1.1 of the same library, with intervals that hold together."""
    heads = ("strategy", "beside HTTP/1.1", "time per request (95 %)", "requests/s", "by HTTP/1.1", "connections")
    found = _pairs(situation, tables)
    if not found:
        return SituationAnswer(situation, _NONE, heads, [], 0, None, "", None, (0, 0))
    sides: dict[str, list[Row]] = {}
    for one, _ in found:
        sides.setdefault(one.word, []).append(one.row)
    words = {"faster": "faster", "slower": "slower", "equal": f"equal within {EQUAL_SHARE}", "undecided": "undecided"}
    parts = [f"{text} with {_some(sides[word])}" for word, text in words.items() if word in sides]
    cells = [
        [_name(one.row), one.word, one.quoted, one.row.text(BY_KEY["throughput"]), other.text(BY_KEY["throughput"]),
         one.row.text(BY_KEY["connections"])]
        for one, other in found[:MOST_SHOWN]
    ]  # fmt: skip
    entries = [entry for one, _ in found[:MOST_SHOWN] if (entry := _entry(one, looks, one.word))]
    best, other = found[0]
    chart = forest("Time per request", entries, "times that of HTTP/1.1 by the same library (logarithmic)")
    return SituationAnswer(
        situation, f"HTTP/2 is {'; '.join(parts)}.", heads, cells, max(0, len(found) - MOST_SHOWN), chart,
        _command([best.row.strategy, other.strategy], best.row, situation), best.row.concurrency,
        (sum(one.word != "undecided" for one, _ in found), len(found)),
    )  # fmt: skip


def _pairs(situation: Situation, tables: Tables) -> list[tuple[Rival, Row]]:
    """An arm over HTTP/2 with its ratio, and the same library over HTTP/1.1; what HTTP/2 helps most comes first."""
    by_name = tables.get(situation.workload, {})
    rows = rows_of(tables, situation.workload, situation.executors, situation.http)
    pairs = [(row, by_name[name]) for row in rows if (name := row.strategy.replace("-h2", "")) in by_name]
    ratios = paired_ratios([(costs_of(row), costs_of(other)) for row, other in pairs], CONFIDENCE)
    shown = [as_shown(ratio, *pair) for pair, ratio in zip(pairs, ratios, strict=True)]
    found = [
        (Rival(row, ratio, decision_of(ratio).word), other) for (row, other), ratio in zip(pairs, shown, strict=True)
    ]
    return sorted(found, key=lambda pair: _value(pair[0].ratio))


def _value(ratio: Ratio | None) -> float:
    return float("inf") if ratio is None else ratio.value


def _command(strategies: Sequence[str], row: Row, situation: Situation) -> str:
    """What measures the first ones against one's own server."""
    tls = situation.workload in {"per-call", "http2"}
    words = ["clientlab", "run", *(word for name in strategies for word in ("-t", name))]
    words += ["-c", str(row.concurrency)] if row.concurrency > 1 else []
    words += ["--header", "Connection: close"] if situation.workload == "per-call" else []
    return shlex.join([*words, "--budget", "60s", "--url", f"http{'s' if tls else ''}://your.server/path"])
