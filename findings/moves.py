"""Whether to move to another library or Python: the time of both in the same situation, from the stored runs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from clientlab import units
from clientlab.analysis.decisions import EQUAL_SHARE, decision_of
from clientlab.analysis.ratios import Ratio, paired_ratio
from clientlab.judging.changes import simultaneous
from clientlab.reports.markdown import table
from clientlab.reports.rows import Row
from findings.contest import as_shown, costs_of
from findings.statements import UnsureSentence

_ASYNC, _BLOCKING = "httpx2", "httpx2_blocking"


UNKNOWN = "unknown: requests failed in most rounds"
"""Stated of a move whose arms have too few rounds in which no request failed."""


@dataclass(frozen=True)
class Move:
    """One situation. `run`: the experiment that measured both arms."""

    situation: str
    to: str
    run: str
    old: str
    new: str


def _in_flight(count: int, to: str, arm: str) -> Move:
    at = f"[concurrency={count}]"
    return Move(f"asyncio, {count:,} in flight", to, _ASYNC, f"httpx{at}", f"{arm}{at}")


def _over_http2(count: int) -> Move:
    at, situation = f"[concurrency={count}]", f"asyncio over HTTP/2, {count} in flight"
    return Move(situation, "httpx2", _BLOCKING, f"httpx-http2{at}", f"httpx2-http2{at}")


FROM_HTTPX = (
    Move("one request after the other", "httpx2", _BLOCKING, "httpx", "httpx2"),
    Move("32 threads, one client", "httpx2", _BLOCKING, "httpx-threads", "httpx2-threads"),
    Move("a call now and then over TLS, own CAs", "httpx2", _BLOCKING, "httpx-call", "httpx2-call"),
    *(_in_flight(count, "httpx2", "httpx2") for count in (16, 200, 512, 1000)),
    Move("asyncio, a connection for each request", "httpx2", _ASYNC, "httpx-per-call", "httpx2-per-call"),
    *map(_over_http2, (16, 100)),
    _in_flight(512, "httpx on aiohttp's transport", "httpx-aiohttp"),
    _in_flight(512, "httpx2 on aiohttp's transport", "httpx2-aiohttp"),
    _in_flight(512, "punkreq", "punkreq"),
    _in_flight(512, "aiohttp", "aiohttp"),
)


FROM_3_11 = tuple(
    Move(situation, f"Python {version}", "pythons", f"{arm} in 3.11", f"{arm} in {version}")
    for arm, situation in (
        ("session", "a session of requests, one request after the other"),
        ("threads", "the same in 8 threads"),
        ("pycurl", "pycurl, one request after the other"),
        ("httpx-async", "httpx on asyncio, 8 in flight"),
        ("aiohttp", "aiohttp, 32 in flight"),
    )
    for version in ("3.12", "3.13", "3.14")
)


def measured_moves(moves: Sequence[Move], arms: Collection[str]) -> list[Move]:
    """The moves to arms that a stored run has: it may be older than an environment of its experiment."""
    return [move for move in moves if move.new in arms]


def moves_table(old: str, moves: Sequence[Move], row: Callable[[str, str], Row]) -> str:
    """One line for each move from `old`. Its intervals hold together. `row`: the arm of a run."""
    heads = ("how you send", "to", old, "the other", f"time with {old} over the other's (95 %)", "the other is")
    confidence = simultaneous(len(moves))
    return table(heads, [_cells(move, row, confidence) for move in moves], left=2)


def none_slower(to: str, moves: Sequence[Move], row: Callable[[str, str], Row]) -> str:
    """A sentence that no move to a library is slower. Raises UnsureSentence where one is."""
    confidence = simultaneous(len(moves))
    chosen = [move for move in moves if move.to == to]
    for move in chosen:
        ratio = _ratio(row(move.run, move.old), row(move.run, move.new), confidence)
        if _word(ratio) == "slower":
            shown = units.ratio_of(ratio)
            raise UnsureSentence(f"{move.run}, {move.situation}: {to} is slower, {shown}; change the answer")
    return f"In none of {len(chosen)} situations is it slower"


def _cells(move: Move, row: Callable[[str, str], Row], confidence: float) -> list[str]:
    old, new = row(move.run, move.old), row(move.run, move.new)
    ratio = _ratio(old, new, confidence)
    return [move.situation, move.to, _rate(old), _rate(new), units.ratio_of(ratio), _word(ratio)]


def _ratio(old: Row, new: Row, confidence: float) -> Ratio | None:
    return as_shown(paired_ratio(costs_of(old), costs_of(new), confidence), old, new)


def _word(ratio: Ratio | None) -> str:
    """What the interval of old over new states of the new one."""
    if ratio is None or ratio.interval is None:
        return UNKNOWN
    word = decision_of(ratio).word
    return {"slower": "faster", "faster": "slower", "equal": f"equal within {EQUAL_SHARE}"}.get(word, word)


def _rate(row: Row) -> str:
    return f"{units.rate(row.figures['throughput'])}/s"
