"""Blocks that quote the run files in findings/runs: their numbers change when an experiment is measured again."""

from __future__ import annotations

from functools import cache

from clientlab.reports.markdown import table
from findings.page import Found, runs

_CHOICES = (
    ("Send many at once", "six-strategies", "threads-beat-serial"),
    ("Send many at once", "frameworks", "ten-threads-beat-loop"),
    ("Keep connections", "keepalive", "session-saves-something"),
    ("Keep connections", "sessions", "session-saves-over-tls"),
    ("Pool as large as requests in flight", "sessions", "small-pool-reconnects"),
    ("Pool as large as requests in flight", "sessions", "small-pool-is-slower"),
    ("asyncio or threads", "semaphore", "aiohttp-beats-queue"),
    ("asyncio or threads", "frameworks", "aiohttp-beats-as-many-threads"),
    ("Which asyncio client", "semaphore", "httpx-is-slower"),
    ("Which asyncio client", "semaphore", "httpx-all-is-slower"),
    ("Several processes", "six-strategies", "one-process-with-600"),
    ("Several processes", "six-strategies", "equal-connections-600"),
    ("Stream large bodies", "sessions", "requests-streams"),
    ("Stream large bodies", "sessions", "aiohttp-streams"),
)


@cache
def _found() -> dict[str, Found]:
    return {name: Found(run) for name, run in runs().items()}


def choices_table() -> str:
    """Decision → claim, experiment, ratio and verdict."""
    heads = ("decision", "claim", "experiment", "ratio (95 %)", "verdict")
    cells = []
    for decision, experiment, name in _CHOICES:
        found = _found()[experiment]
        cells.append((decision, found.claims[name].text, experiment, found.ratio(name), found.verdict(name)))
    return table(heads, cells, left=len(heads))


def servers_table() -> str:
    """Requests per second by server, beside the article's."""
    return _found()["frameworks-servers"].servers_table()
