"""The cases in which the truth is known, and what an expert would say limited them. Written before they were run."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

_CLIENTS = Path(__file__).with_name("verdict_clients.py")


@dataclass(frozen=True)
class Case:
    """A trial that is limited by something known.

    `expected`: the verdicts that are right. `delay`, `requests` and `concurrency` of the workload. `around`: what runs
    beside the trial: programs that use all cores, a proxy with one core, or a server of the user's own with one core.
    """

    name: str
    strategy: str
    expected: tuple[str, ...]
    requests: int
    concurrency: int = 32
    upstream: str = "aiohttp"
    route: str = "direct"
    delay: str | None = None
    around: Literal["", "burners", "pinned proxy", "own server"] = ""
    workload: dict[str, Any] = field(default_factory=dict)


CASES = (
    Case("httpx threads, bound by their CPU", "httpx-client@threads", ("client-bound",), 2500),
    Case("requests threads, bound by their CPU", "requests-session@threads", ("client-bound",), 3000),
    Case("Flask with one worker", "pycurl@multi", ("upstream-bound",), 3000, upstream="flask?workers=1"),
    Case("pure delay", "aiohttp@workers", ("latency-bound",), 640, delay="100ms"),
    Case("gather with a pool of 4", "aiohttp@gather?pool=4", ("client-connections",), 400, delay="20ms"),
    Case(
        "threads with a pool of 4 that blocks",
        "requests-session@threads?pool=4&pool_block=true",
        ("client-connections",),
        400,
        delay="20ms",
    ),
    Case("a user's client with one lock, delayed", f"{_CLIENTS}:Locked@threads", ("client-lock",), 300, delay="5ms"),
    Case("a user's client with one lock", f"{_CLIENTS}:Locked@threads", ("client-lock",), 3000),
    Case(
        "Flask with 1 worker and 4 threads",
        "pycurl@multi",
        ("upstream-threads",),
        400,
        upstream="flask?workers=1&threads=4",
        delay="20ms",
    ),
    Case("a server of the user's own, bound by its CPU", "aiohttp@workers", ("outside",), 800, around="own server"),
    Case("one request after the other, without a delay", "http.client", ("chain",), 4000, concurrency=1),
    Case(
        "one request after the other through the proxy",
        "http.client",
        ("chain",),
        2500,
        concurrency=1,
        route="proxy",
    ),
    Case(
        "a machine full of other work",
        "requests-session@threads",
        ("machine",),
        1500,
        concurrency=4,  # the scheduler shares the cores among threads: 32 of the client's get most of them
        around="burners",
    ),
    Case("a proxy with one core, saturated", "ab", ("proxy-bound",), 12000, route="proxy", around="pinned proxy"),
    Case(
        "all cores full, no part of them",
        "pycurl@multi",
        ("machine",),
        8000,
        concurrency=64,
        upstream="aiohttp?workers=2",
        route="proxy",
    ),
    Case(
        "a native client with two threads at 0.4 cores",
        f"{_CLIENTS}:Native@threads",
        ("latency-bound", "chain"),
        1500,
        concurrency=2,
        delay="1ms",
    ),
)
