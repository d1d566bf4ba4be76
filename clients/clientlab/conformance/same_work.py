"""Whether a strategy did the same work as all others: each requested once, within the budget."""

from __future__ import annotations

import json
from collections import Counter

from clientlab.conformance.evidence import Evidence
from clientlab.conformance.h2_proxy import VERSION_HEADER
from clientlab.conformance.responses import content
from clientlab.conformance.server import Seen
from clientlab.strategies import client_spec, executor_spec

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
    if _pool(found) is not None or most >= wanted:
        return ""
    return f"{wanted} are to be in flight at once; never more than {most} were"


def policy(found: Evidence) -> str:
    """The client opened the connections of the strategy's policy."""
    opened, promised = found.connections, found.strategy.policy
    if promised == "per call":
        wanted = f"a connection for each of {found.requests} requests is its policy; {opened} were opened"
        return "" if opened == found.requests else wanted
    pool = _pool(found)
    if pool is not None:
        return _small_pool(pool, found)
    most = min(found.in_flight, found.requests)
    quirks = client_spec(found.strategy.client).quirks
    if quirks.opens_ahead:
        most *= 2
    if quirks.closes_after_head and found.workload.method == "HEAD":
        most = found.requests
    if 1 <= opened <= most:
        return ""
    return f"connections are kept ({promised}): at most {most} are to be opened; {opened} were"


def _pool(found: Evidence) -> int | None:
    """The size of a pool that settings make smaller than the requests in flight; 0: the library's own; else None."""
    if found.strategy.settings.get("library_defaults"):
        return 0
    pool: int | None = found.strategy.settings.get("pool", found.in_flight)  # 0 and None: no limit
    return pool if pool and pool < min(found.in_flight, found.requests) else None


def _small_pool(pool: int, found: Evidence) -> str:
    """A pool that blocks opens no more than its size. One that does not opens connections again that it threw away."""
    opened, most = found.connections, found.server.most_in_flight
    a_pool_each = found.outcome.callers > 1 or found.strategy.policy == "per thread" or found.http2
    if not pool or a_pool_each or found.requests <= found.in_flight:
        return "" if 1 <= opened <= found.requests else f"{opened} connections were opened"
    if most <= pool and found.strategy.source != "trap":
        return "" if opened <= pool else f"its pool of {pool} lets requests wait; {opened} connections were opened"
    if opened > most:
        return ""
    return f"its pool of {pool} throws connections away, and is to open them again: for {most} in flight, {opened} were"


def counted(found: Evidence) -> str:
    """The lab counted as many connections as the server. Empty for a library that hides them."""
    if client_spec(found.strategy.client).quirks.uncounted:
        return ""
    # reqwest opens one while it waits for another to be free, and may leave it unused: both counts are right.
    by_lab, opened = found.outcome.connections_begun, found.connections
    right = {opened} if found.http2 else {opened, found.server.accepted}
    return "" if by_lab in right else f"the lab counted {by_lab} connections, the server {opened}"
