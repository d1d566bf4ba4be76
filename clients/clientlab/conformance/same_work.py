"""Whether a strategy did the same work as all others: what was asked, once each, within its budget."""

from __future__ import annotations

import json
from collections import Counter

from clientlab.conformance.evidence import Evidence
from clientlab.conformance.front import VERSION_HEADER
from clientlab.conformance.items import content
from clientlab.conformance.server import Seen
from clientlab.strategies import client_row, executor_row

HEADERS = {"x-mine": "yes", "accept-encoding": "identity", "content-type": "application/json"}
_WITHOUT_BODY = ("x-mine", "accept-encoding")
_OPENS_AHEAD = {"pyreqwest"}
"""Distributions that may open a connection while a used one is on its way back to the pool. README names them."""
_CLOSES_AFTER_HEAD = {"httplib2"}
"""Distributions that close the connection of each HEAD. README names them."""


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
    """Each request once, and no other."""
    return _numbers(found.requests, found.server.seen)


def as_asked(found: Evidence) -> str:
    """Method, headers and body of every request."""
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
    """That of every request."""
    asked = found.workload.method
    others = {seen.method for seen in found.server.seen} - {asked}
    return f"the method is {asked}, and {', '.join(sorted(others))} reached the server" if others else ""


def _version(found: Evidence) -> str:
    """Of HTTP, where it is to be 2: what Caddy saw of it."""
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
    """Each request once, as good."""
    numbers = sorted(found.samples.numbers.tolist())
    if numbers != list(range(found.requests)):
        return f"{found.requests} requests are to be recorded once each; {len(numbers)} were"
    if found.kinds:
        kind, count = Counter(found.kinds.values()).most_common(1)[0]
        return f"{count} requests are recorded as {kind}: {found.samples.examples[kind]}"
    statuses = set(found.samples.records["status"].tolist())
    return "" if statuses == {200} else f"all answers are 200; {statuses} is recorded"


def whole_body(found: Evidence) -> str:
    """As many bytes as the server sent, of each answer."""
    sizes = found.samples.records["bytes"].tolist()
    for number, size in zip(found.samples.numbers.tolist(), sizes, strict=True):
        sent = 0 if found.workload.method == "HEAD" else len(content(number))
        if number not in found.kinds and size != sent:
            return f"the answer to request {number} has {sent} bytes, and {size} were read"
    return ""


def never_more(found: Evidence) -> str:
    """In flight at once than asked."""
    most = found.server.most_in_flight
    return "" if most <= found.in_flight else f"{found.in_flight} may be in flight at once; {most} were"


def as_many(found: Evidence) -> str:
    """In flight at once as asked, and as there are requests."""
    most, asked = found.server.most_in_flight, found.workload.concurrency or 1
    if executor_row(found.strategy.executor).unbounded:
        wanted = min(asked + 1, found.requests)
        return "" if most >= wanted else f"all are to be in flight at once; never more than {most} were"
    wanted = min(found.in_flight, found.requests)
    if _pool(found) is not None or most >= wanted:
        return ""
    return f"{wanted} are to be in flight at once; never more than {most} were"


def policy(found: Evidence) -> str:
    """Connections as the strategy promises."""
    opened, promised = found.connections, found.strategy.policy
    if promised == "per call":
        wanted = f"a connection for each of {found.requests} requests is its policy; {opened} were opened"
        return "" if opened == found.requests else wanted
    pool = _pool(found)
    if pool is not None:
        return _small_pool(pool, found)
    most = min(found.in_flight, found.requests)
    distribution = client_row(found.strategy.client).distribution
    if distribution in _OPENS_AHEAD:
        most *= 2
    if distribution in _CLOSES_AFTER_HEAD and found.workload.method == "HEAD":
        most = found.requests
    if 1 <= opened <= most:
        return ""
    return f"connections are kept ({promised}): at most {most} are to be opened; {opened} were"


def _pool(found: Evidence) -> int | None:
    """Connections of a pool that its settings make smaller than what is in flight; 0: as its library has it."""
    if found.strategy.settings.get("library_defaults"):
        return 0
    pool: int | None = found.strategy.settings.get("pool", found.in_flight)  # 0 and None: no limit
    return pool if pool and pool < min(found.in_flight, found.requests) else None


def _small_pool(pool: int, found: Evidence) -> str:
    """One that blocks keeps to its size; one that does not opens again what it threw away."""
    opened, most = found.connections, found.server.most_in_flight
    a_pool_each = found.outcome.processes > 1 or found.strategy.policy == "per thread" or found.http2
    if not pool or a_pool_each or found.requests <= found.in_flight:
        return "" if 1 <= opened <= found.requests else f"{opened} connections were opened"
    if most <= pool and found.strategy.source != "trap":
        return "" if opened <= pool else f"its pool of {pool} lets requests wait; {opened} connections were opened"
    if opened > most:
        return ""
    return f"its pool of {pool} throws connections away, and is to open them again: for {most} in flight, {opened} were"


def counted(found: Evidence) -> str:
    """The lab's count of connections is the server's."""
    # reqwest opens one while it waits for another to be free, and may leave it unused: both counts are right.
    by_lab, opened = found.outcome.connections_begun, found.connections
    right = {opened} if found.http2 else {opened, found.server.accepted}
    return "" if by_lab in right else f"the lab counted {by_lab} connections, the server {opened}"
