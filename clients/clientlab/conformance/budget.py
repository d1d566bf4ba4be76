"""The drill of equal budgets: a thousand requests, and what reached the server of them."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable

from clientlab.conformance.drill import Check, Drill
from clientlab.conformance.evidence import Evidence, serve
from clientlab.conformance.server import Answer, Seen, ok
from clientlab.strategies import Strategy, client_row, executor_row
from clientlab.workload import Workload

REQUESTS = 1000
CONCURRENCY = 7  # six chunks and one for the remainder fill it
PAYLOAD = 300
_HEADERS = {"x-mine": "yes", "accept-encoding": "identity", "content-type": "application/json"}
_CHUNKED_EVERY = 10
_MOMENT = 0.03
_PATIENCE = 5.0
_HOLD = 0.001
_OPENS_AHEAD = {"pyreqwest"}
"""Distributions that may open a connection while a used one is on its way back to the pool. README names them."""


class Gate:
    """Holds the first requests until `width` of them are in flight, and a moment more: for one too many.

    All later ones go through. It opens by itself where so many never come.
    """

    def __init__(self, width: int) -> None:
        self._missing = width
        self._lock = threading.Lock()
        self._open = threading.Event()

    def wait(self) -> None:
        """Come in, and go on when all have come."""
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
    """The answer to request `number`: of a length of its own, so that one in the place of another is seen."""
    return json.dumps({"number": number, "rest": "x" * (37 * number % 3000)}).encode()


def items(gate: Gate, hold: float) -> Callable[[Seen], Answer]:
    """Answers to `/item/NUMBER?x=1`; the first request of all is the warm-up, and not held."""
    warm = threading.Event()

    def answer(seen: Seen) -> Answer:
        if not warm.is_set():
            warm.set()
        else:
            gate.wait()
            time.sleep(hold)
        number = int(seen.target.removeprefix("/item/").partition("?")[0])
        body = content(number)
        return ok(body) if number % _CHUNKED_EVERY else _chunked(body)

    return answer


def _chunked(body: bytes) -> bytes:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    pieces = [body[at : at + 500] for at in range(0, len(body), 500)]
    return head + b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


def _do(strategy: Strategy) -> Evidence:
    workload = Workload(
        path="/item/{k}?x=1", method="POST", payload_size=PAYLOAD, headers={"X-Mine": "yes"}, parse=True,
        requests=REQUESTS, concurrency=CONCURRENCY, warmup=1,
    )  # fmt: skip
    width = strategy.in_flight(CONCURRENCY, REQUESTS)
    gate = Gate(min(width, CONCURRENCY + 1))
    return serve(strategy, workload, items(gate, _HOLD if width > 1 else 0.0))


def numbers(expected: int, reached: list[Seen], what: str = "requests") -> str:
    """Whether requests 0 to `expected` - 1 have reached the server, once each."""
    count = Counter(seen.target for seen in reached)
    wanted = {f"/item/{number}?x=1" for number in range(expected)}
    twice = [target for target, times in count.items() if times > 1]
    missing, foreign = wanted - set(count), set(count) - wanted
    if not twice and not missing and not foreign:
        return ""
    parts = [("sent more than once", twice), ("never sent", missing), ("not asked for", foreign)]
    told = "; ".join(f"{len(targets)} {how}, as {min(targets)}" for how, targets in parts if targets)
    return f"of {expected} {what}, {len(reached)} reached the server: {told}"


def _exactly_n(found: Evidence) -> str:
    return numbers(REQUESTS, found.server.seen)


def _one(found: Evidence) -> str:
    return numbers(1, found.warmed, "request")


def _bytes(found: Evidence) -> str:
    every = [*found.warmed, *found.server.seen]
    if methods := {seen.method for seen in every} - {"POST"}:
        return f"the method is POST, and {', '.join(sorted(methods))} reached the server"
    for name, value in _HEADERS.items():
        if got := {seen.headers.get(name) for seen in every} - {value}:
            return f"header {name}: {value} reached the server as {got.pop()!r}"
    bodies = {seen.body for seen in every}
    if len(bodies) != 1:
        return f"all requests have one body, and {len(bodies)} different ones reached the server"
    return _json(bodies.pop())


def _json(body: bytes) -> str:
    try:
        document = json.loads(body)
    except ValueError as error:
        return f"the body that reached the server is not the JSON that was to be sent: {error}"
    if set(document) != {"data"} or len(document["data"]) != PAYLOAD:
        return f"the body that reached the server is not an object with 'data' of {PAYLOAD} characters: {body[:60]!r}"
    return ""


def _recorded(found: Evidence) -> str:
    recorded = sorted(found.samples.numbers.tolist())
    if recorded != list(range(REQUESTS)):
        return f"{REQUESTS} requests are to be recorded once each; {len(recorded)} were"
    if found.kinds:
        kind, count = Counter(found.kinds.values()).most_common(1)[0]
        return f"{count} requests are recorded as {kind}: {found.samples.examples[kind]}"
    statuses = set(found.samples.records["status"].tolist())
    return "" if statuses == {200} else f"all answers are 200; {statuses} is recorded"


def _whole_body(found: Evidence) -> str:
    sizes = found.samples.records["bytes"].tolist()
    for number, size in zip(found.samples.numbers.tolist(), sizes, strict=True):
        if number not in found.kinds and size != len(content(number)):
            return f"the answer to request {number} has {len(content(number))} bytes, and {size} were read"
    return ""


def _never_more(found: Evidence) -> str:
    most = found.server.most_in_flight
    return "" if most <= found.in_flight else f"{found.in_flight} may be in flight at once; {most} were"


def _reached(found: Evidence) -> str:
    most, row = found.server.most_in_flight, executor_row(found.strategy.executor)
    if row.unbounded:
        return "" if most > CONCURRENCY else f"all are to be in flight at once; never more than {most} were"
    if _narrowed(found) or most >= found.in_flight:
        return ""
    return f"{found.in_flight} are to be in flight at once; never more than {most} were"


def _narrowed(found: Evidence) -> bool:
    """Whether its settings leave it fewer connections than requests in flight, or as many as its library likes."""
    settings = found.strategy.settings
    pool = settings.get("pool", found.in_flight)  # 0 and None: no limit
    return bool(settings.get("library_defaults") or (pool and pool < found.in_flight))


def _policy(found: Evidence) -> str:
    opened, policy = found.server.connections, found.strategy.policy
    if policy == "per call":
        return (
            ""
            if opened == REQUESTS
            else f"a connection for each of {REQUESTS} requests is its policy; {opened} were opened"
        )
    ahead = client_row(found.strategy.client).distribution in _OPENS_AHEAD
    most = found.in_flight * 2 if ahead else found.in_flight
    most = REQUESTS if _narrowed(found) else most  # a pool too small opens them again
    if 1 <= opened <= most:
        return ""
    return f"connections are kept ({policy}): at most {most} are to be opened; {opened} were"


def _counted(found: Evidence) -> str:
    # reqwest opens one while it waits for another to be free, and may leave it unused: both counts are right.
    counted, opened = found.outcome.connections_begun, found.server.connections
    return (
        ""
        if counted in {opened, found.server.accepted}
        else f"the lab counted {counted} connections, the server {opened}"
    )


CHECKS: dict[str, Check[Evidence]] = {
    "1,000 requests": _exactly_n,
    "one request": _one,
    "method, headers, body": _bytes,
    "recorded once": _recorded,
    "whole body read": _whole_body,
    "never more in flight": _never_more,
    "as many in flight": _reached,
    "connection policy": _policy,
    "connections counted": _counted,
}

BUDGET = Drill("budget", _do, CHECKS)
