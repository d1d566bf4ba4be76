"""The cases in which the truth is known, and what an expert would say limited them. Written before they were run."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from clientlab.workload.link import Link

_CLIENTS = Path(__file__).with_name("verdict_clients.py")


@dataclass(frozen=True)
class Case:
    """A trial that is limited by something known.

    `expected`: the verdicts that are right. `delay`, `requests` and `concurrency` of the workload. `around`: what runs
    beside the trial: programs that use all cores, a proxy with one core, or a server of the user's own with one core.
    `link`: before the upstream. `requests` is None if the workload has a duration.
    """

    name: str
    strategy: str
    expected: tuple[str, ...]
    requests: int | None
    concurrency: int = 32
    upstream: str = "aiohttp"
    route: str = "direct"
    delay: str | None = None
    around: Literal["", "burners", "pinned proxy", "own server"] = ""
    workload: dict[str, Any] = field(default_factory=dict)
    link: Link | None = None


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
    Case("one request in flight that stalls for 40 ms", f"{_CLIENTS}:Stalled", ("unaccounted",), 40, concurrency=1),
    Case("eight threads that stall for 40 ms", f"{_CLIENTS}:Stalled@threads", ("unaccounted",), 320, concurrency=8),
    *(
        Case(
            f"Flask with 2 x 25 threads, {count} in flight",
            "aiohttp@workers",
            ("upstream-threads",),
            1200,
            concurrency=count,
            upstream="flask?workers=2&threads=25",
            delay="100ms",
        )
        for count in (64, 96, 104)
    ),
    Case("a pool of 40, 64 in flight", "aiohttp@workers?pool=40", ("client-connections",), 800, 64, delay="100ms"),
    *(
        Case(
            f"100 streams of HTTP/2, {count} in flight",
            "httpx-async-h2@workers",
            ("client-streams",),
            1000,
            concurrency=count,
            route="proxy-tls",
            delay="500ms",
        )
        for count in (150, 500)
    ),
    Case("threads that use more than a core", f"{_CLIENTS}:Half@threads", ("client-bound",), 400, concurrency=8),
    Case(
        "uploads of 50 kB over 20 Mbit/s",
        "aiohttp@workers",
        ("bandwidth-bound",),
        150,
        workload={"method": "POST", "path": "/echo", "payload_size": 50_000},
        link=Link(0.01, 20e6),
    ),
    Case(
        "headers of 300 bytes beside small bodies, over 500 kbit/s",
        "aiohttp@workers",
        ("bandwidth-bound",),
        500,
        workload={"headers": {"X-Padding": "x" * 300}},
        link=Link(0.01, 5e5),
    ),
    Case(
        "600/s to a server that does 300/s, with room for all",
        "aiohttp@workers",
        ("overloaded",),
        None,
        concurrency=4096,
        upstream="flask?workers=1&threads=3",
        delay="10ms",
        workload={"rate": 600.0, "duration": 3.0},
    ),
    Case(
        "200/s to a server that does 190/s",
        "aiohttp@workers",
        ("overloaded",),
        None,
        concurrency=128,
        upstream="flask?workers=1&threads=19",
        delay="100ms",
        workload={"rate": 200.0, "duration": 5.0},
    ),
)
