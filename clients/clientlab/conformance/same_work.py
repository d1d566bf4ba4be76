"""Equal budgets: whether a strategy did the same work as all others, each request once, with its own answer."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from clientlab.conformance.evidence import FEW_CAS, Evidence, serve
from clientlab.conformance.h2_proxy import VERSION_HEADER
from clientlab.conformance.scenario import Check, Scenario
from clientlab.conformance.server import Seen, ServerAnswer, ok
from clientlab.strategies import Strategy, client_spec, executor_spec
from clientlab.workload.workload import Workload

_CHUNKED_EVERY = 10
_MOMENT = 0.03
_PATIENCE = 5.0


class Gate:
    """Holds the first requests until `width` are in flight, and a moment longer to notice one too many.

    All later ones go through. It opens by itself where so many never come.
    """

    def __init__(self, width: int) -> None:
        self._missing = width
        self._lock = threading.Lock()
        self._open = threading.Event()

    def wait(self) -> None:
        """Enter, and return when all have entered."""
        if self._open.is_set():
            return
        with self._lock:
            self._missing -= 1
            last = self._missing == 0
        if last:
            time.sleep(_MOMENT)
        else:
            self._open.wait(_PATIENCE)
        self._open.set()


def content(number: int) -> bytes:
    """The body for request `number`. Each has its own length, so that a swapped answer is noticed."""
    return json.dumps({"number": number, "rest": "x" * (37 * number % 3000)}).encode()


def items(gate: Gate, hold: float) -> Callable[[Seen], ServerAnswer]:
    """Answers to `/item/NUMBER?x=1`. The first request is the warm-up, and is not held."""
    warm = threading.Event()

    def answer(seen: Seen) -> ServerAnswer:
        if not warm.is_set():
            warm.set()
        else:
            gate.wait()
            time.sleep(hold)
        number = seen.target.removeprefix("/item/").partition("?")[0]
        if not number.isdigit():
            return ok(status="404 Not Found")
        body = content(int(number))
        if seen.method == "HEAD":
            return ok(body)[: -len(body)]
        return ok(body) if int(number) % _CHUNKED_EVERY else _chunked(body)

    return answer


def _chunked(body: bytes) -> bytes:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    pieces = [body[at : at + 500] for at in range(0, len(body), 500)]
    return head + b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


HEADERS = {"x-mine": "yes", "accept-encoding": "identity", "content-type": "application/json"}
_WITHOUT_BODY = ("x-mine", "accept-encoding")


def _numbers(expected: int, reached: list[Seen]) -> str:
    count = Counter(seen.target for seen in reached)
    wanted = {f"/item/{number}?x=1" for number in range(expected)}
    twice = [target for target, times in count.items() if times > 1]
    missing, foreign = wanted - set(count), set(count) - wanted
    if not twice and not missing and not foreign:
        return ""
    parts = [("sent more than once", twice), ("never sent", missing), ("not asked for", foreign)]
    told = "; ".join(f"{len(targets)} {how}, as {min(targets)}" for how, targets in parts if targets)
    what = "requests" if expected > 1 else "request"
    return f"of {expected} {what}, {len(reached)} reached the server: {told}"


def exactly_n(found: Evidence) -> str:
    """Each request reached the server once, and no other did."""
    return _numbers(found.requests, found.server.seen)


def as_asked(found: Evidence) -> str:
    """Every request had the workload's method, headers and body."""
    if broken := method(found) or _version(found):
        return broken
    headers = HEADERS if found.workload.payload_size else {name: HEADERS[name] for name in _WITHOUT_BODY}
    if client_spec(found.strategy.client).url_only:
        headers = {}
    for name, value in headers.items():
        if got := {seen.headers.get(name) for seen in found.server.seen} - {value}:
            return f"header {name}: {value} reached the server as {got.pop()!r}"
    bodies = {seen.body for seen in found.server.seen}
    if len(bodies) != 1:
        return f"all requests have one body, and {len(bodies)} different ones reached the server"
    return _json(bodies.pop(), found.workload.payload_size)


def method(found: Evidence) -> str:
    """Every request had the workload's method."""
    asked = found.workload.method
    others = {seen.method for seen in found.server.seen} - {asked}
    return f"the method is {asked}, and {', '.join(sorted(others))} reached the server" if others else ""


def _version(found: Evidence) -> str:
    """Every request of an HTTP/2 client reached Caddy over HTTP/2."""
    others = {seen.headers[VERSION_HEADER] for seen in found.server.seen} - {"HTTP/2.0"} if found.http2 else set()
    return f"HTTP/2 is to be spoken, and {others.pop()} was" if others else ""


def _json(body: bytes, size: int | None) -> str:
    if size is None:
        return f"a body of {len(body)} bytes reached the server where none was to be sent" if body else ""
    try:
        document = json.loads(body)
    except ValueError as error:
        return f"the body that reached the server is not the JSON that was to be sent: {error}"
    if set(document) != {"data"} or len(document["data"]) != size:
        return f"the body that reached the server is not an object with 'data' of {size} characters: {body[:60]!r}"
    return ""


def recorded(found: Evidence) -> str:
    """Each request was recorded once, with status 200 and no error."""
    numbers = sorted(found.samples.numbers.tolist())
    if numbers != list(range(found.requests)):
        return f"{found.requests} requests are to be recorded once each; {len(numbers)} were"
    if found.kinds:
        kind, count = Counter(found.kinds.values()).most_common(1)[0]
        return f"{count} requests are recorded as {kind}: {found.samples.examples[kind]}"
    statuses = set(found.samples.records["status"].tolist())
    return "" if statuses == {200} else f"all answers are 200; {statuses} is recorded"


def whole_body(found: Evidence) -> str:
    """Of each answer, the client read as many bytes as the server sent."""
    sizes = found.samples.records["bytes"].tolist()
    for number, size in zip(found.samples.numbers.tolist(), sizes, strict=True):
        sent = 0 if found.workload.method == "HEAD" else len(content(number))
        if number not in found.kinds and size != sent:
            return f"the answer to request {number} has {sent} bytes, and {size} were read"
    return ""


def never_more(found: Evidence) -> str:
    """Never more requests were in flight than the workload's concurrency."""
    most = found.server.most_in_flight
    return "" if most <= found.in_flight else f"{found.in_flight} may be in flight at once; {most} were"


def as_many(found: Evidence) -> str:
    """As many requests were in flight as the concurrency and the number of requests permit."""
    most, asked = found.server.most_in_flight, found.workload.concurrency or 1
    if executor_spec(found.strategy.executor).unbounded:
        wanted = min(asked + 1, found.requests)
        return "" if most >= wanted else f"all are to be in flight at once; never more than {most} were"
    wanted = min(found.in_flight, found.requests)
    if _has_small_pool(found) or most >= wanted:
        return ""
    return f"{wanted} are to be in flight at once; never more than {most} were"


def policy(found: Evidence) -> str:
    """The client opened the connections of the strategy's policy."""
    opened, promised = found.connections, found.strategy.policy
    if promised == "per call":
        wanted = f"a connection for each of {found.requests} requests is its policy; {opened} were opened"
        return "" if opened == found.requests else wanted
    most = min(found.in_flight, found.requests)
    quirks = client_spec(found.strategy.client).quirks
    if quirks.opens_ahead:
        most *= 2
    if _has_small_pool(found) or (quirks.closes_after_head and found.workload.method == "HEAD"):
        most = found.requests  # a small pool throws connections away, and opens them again
    least = 0 if client_spec(found.strategy.client).url_only else 1  # its module may keep one of the warm-up
    if least <= opened <= most:
        return ""
    return f"connections are kept ({promised}): at most {most} are to be opened; {opened} were"


def _has_small_pool(found: Evidence) -> bool:
    """Whether settings make the pool smaller than the number of requests in flight."""
    settings = found.strategy.settings
    pool = settings.get("pool") or found.in_flight  # 0 and None: no limit
    return settings.get("library_defaults", False) or pool < min(found.in_flight, found.requests)


def counted(found: Evidence) -> str:
    """The lab counted as many connections as the server. Empty for a library that hides them."""
    by_lab, opened = found.outcome.connections_begun, found.connections
    spec = client_spec(found.strategy.client)
    if spec.quirks.uncounted or (spec.url_only and by_lab == 0):  # the function's library connects outside Python
        return ""
    # reqwest opens one while it waits for another to be free, and may leave it unused: both counts are right.
    right = {opened} if found.http2 else {opened, found.server.accepted}
    return "" if by_lab in right else f"the lab counted {by_lab} connections, the server {opened}"


CONCURRENCY = 7  # of the thousand: six chunks and one for the remainder fill it
WIDE = 10
"""The concurrency of workloads that have fewer requests."""

_HOLD = 0.001


_URL_ONLY: dict[str, Any] = {"method": "GET", "payload_size": None, "headers": {}}
"""What a function of a URL can send of a workload."""


def _do(workload: Workload) -> Callable[[Strategy], Evidence]:
    def do(strategy: Strategy) -> Evidence:
        asked, requests = workload.concurrency or 1, workload.requests or 0
        width = strategy.in_flight(asked, requests)
        gate = Gate(min(width, asked + 1, requests))
        sent = replace(workload, **_URL_ONLY) if client_spec(strategy.client).url_only else workload
        return serve(strategy, sent, items(gate, _HOLD if width > 1 else 0.0), ca_file=FEW_CAS)

    return do


def _of(method: str, requests: int, concurrency: int, *, payload: bool, parse: bool = False) -> Workload:
    return Workload(
        path="/item/{k}?x=1", method=method, payload_size=300 if payload else None, headers={"X-Mine": "yes"},
        parse=parse, requests=requests, concurrency=concurrency, warmup=1,
    )  # fmt: skip


CHECKS: dict[str, Check[Evidence]] = {
    "1,000 requests": exactly_n,
    "method, headers, body": as_asked,
    "recorded once": recorded,
    "whole body read": whole_body,
    "never more in flight": never_more,
    "as many in flight": as_many,
    "connection policy": policy,
    "connections counted": counted,
}


def _all_of_them(found: Evidence) -> str:
    """The message of the first of these checks that finds something broken; empty if none does."""
    return next((broken for check in CHECKS.values() if (broken := check(found))), "")


BUDGET = Scenario("budget", _do(_of("POST", 1000, CONCURRENCY, payload=True, parse=True)), CHECKS)
ONE = Scenario(
    "one",
    _do(_of("PUT", 1, WIDE, payload=True)),
    {"one request": _all_of_them, "method PUT": method},
)
SEVEN = Scenario(
    "seven",
    _do(_of("HEAD", 7, WIDE, payload=False)),
    {"seven requests": _all_of_them, "method HEAD": method},
)
