"""How a strategy takes each fault of a server: its error, when it notices, and what
becomes of the request and the connection.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import NamedTuple

from clientlab import units
from clientlab.conformance.checking import measure_against, speaks_http2
from clientlab.conformance.fault_checks import (
    FAULTS,
    GOOD,
    IN_HTTP2_TOO,
    SLACK,
    Fault,
)
from clientlab.conformance.server import Paced, Seen, ServerAnswer, Stall, ok
from clientlab.strategies import Strategy, executor_spec
from clientlab.workload.workload import make_workload

_TIMEOUT = 0.5
_DRIP_SECONDS = 2.0
_DRIP_PAUSE = 0.1  # shorter than the timeout, so that only a limit of the whole helps
_LONGEST = 30.0


def _drip() -> Paced:
    """Return an answer whose body takes four times the timeout, a byte at a time."""
    whole = ok(b" " * round(_DRIP_SECONDS / _DRIP_PAUSE))
    head, mark, body = whole.partition(b"\r\n\r\n")
    blocks = [head + mark, *(body[at : at + 1] for at in range(len(body)))]
    return Paced([partial(bytes, block) for block in blocks], _DRIP_PAUSE)


_DRIP = Fault("body drips for 2 s", ok(), "none")
_TABLE = (*(fault for fault in FAULTS if fault.name != "redirect"), _DRIP)


class Reaction(NamedTuple):
    """What a strategy did when it met a fault with a timeout of 500 ms."""

    fault: str
    kind: str
    """Of the error; ``none`` for a success."""

    seconds: float
    """Until the call ended."""

    sent_again: bool
    keeps_connection: bool | None
    """Whether the next request used the connection. None: it has none of its own."""

    is_late: bool
    """Whether the call went on for longer than the timeout and two seconds."""

    @property
    def text(self) -> str:
        """The reaction as a cell of the table."""
        parts = ["success" if self.kind == "none" else self.kind]
        parts.append(units.time(self.seconds))
        if self.sent_again:
            parts.append("sent again")
        if self.keeps_connection:
            parts.append("kept")
        if self.is_late:
            parts.append("late")
        return ", ".join(parts)


def find_reactions(strategy: Strategy) -> list[Reaction]:
    """Send a request to each fault, and a good one after it. Raise TrialFailed."""
    faults = [fault for fault in _TABLE if fault.name in IN_HTTP2_TOO]
    if not speaks_http2(strategy):
        faults = list(_TABLE)
    # The first two meet new connections, the others follow a good answer.
    parts = faults[:2]
    for fault in faults[2:]:
        parts += [GOOD, fault]
    parts.append(GOOD)
    workload = make_workload(
        path="/{k}",
        requests=len(parts),
        concurrency=1,
        warmup=0,
        timeout=_TIMEOUT,
        request_limit=_LONGEST,
    )

    def answer(seen: Seen) -> ServerAnswer:
        number = seen.target.removeprefix("/")
        fault = parts[int(number)] if number.isdigit() else GOOD
        return _drip() if fault is _DRIP else fault.answer

    evidence = measure_against(answer, strategy, workload)
    seen = evidence.server.seen
    count = Counter(request.target for request in seen)
    connections = {request.target: request.connection for request in seen}
    records = evidence.samples.records["seconds"].tolist()
    seconds = dict(zip(evidence.numbers, records, strict=True))
    has_pool = strategy.policy != "per call"
    has_pool &= not executor_spec(strategy.executor).concurrent
    reactions = []
    for number, fault in enumerate(parts):
        if fault is GOOD:
            continue
        keeps = None
        if has_pool:
            used, following = connections.get(f"/{number}"), f"/{number + 1}"
            keeps = used is not None and connections.get(following) == used
        took = seconds.get(number, 0.0)
        is_stall = isinstance(fault.answer, Stall)
        reactions.append(
            Reaction(
                fault.name,
                evidence.kinds.get(number, "none"),
                took,
                count[f"/{number}"] > 1,
                keeps,
                is_stall and took > _TIMEOUT + SLACK,
            )
        )
    return reactions
