"""The drill of faults: whatever a server does wrong, each is of one kind for every strategy, and sent once."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import partial

from clientlab.conformance.drill import Check, Drill
from clientlab.conformance.evidence import Evidence, serve
from clientlab.conformance.same_work import method
from clientlab.conformance.server import Answer, Last, Reset, Seen, Stall, ok
from clientlab.strategies import Strategy, client_row, executor_row
from clientlab.workload import Workload

TIMEOUT = 0.5
SLACK = 2.0
"""Seconds beyond the time limit after which a client is late; far more than a busy machine takes."""

_CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
_AWAY = b"HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n"


@dataclass(frozen=True)
class ServerFault:
    """One thing that goes wrong, and its kind; ``none`` for what is no error."""

    name: str
    answer: Answer
    kind: str


GOOD = ServerFault("a good answer after a fault", ok(), "none")

FAULTS = (
    ServerFault("closed before an answer", None, "reset"),
    ServerFault("reset before an answer", Reset(), "reset"),
    ServerFault("used connection closed", None, "reset"),
    ServerFault("used connection reset", Reset(), "reset"),
    ServerFault("reset in the body", Reset(ok()[:-5]), "reset"),
    ServerFault("no answer", Stall(), "timeout-read"),
    ServerFault("silence in the headers", Stall(ok()[:40]), "timeout-read"),
    ServerFault("silence in the body", Stall(ok()[:-5]), "timeout-read"),
    ServerFault("truncated body", Last(ok()[:-5]), "protocol"),
    ServerFault("truncated chunk", Last(_CHUNKED + b"10\r\nabc"), "protocol"),
    ServerFault("malformed chunk", Last(_CHUNKED + b"zz\r\nabc\r\n0\r\n\r\n"), "protocol"),
    ServerFault("malformed status line", b"\x00\xff\xfe this is\r\nnot HTTP\r\n\r\n", "protocol"),
    ServerFault("answer 404", ok(status="404 Not Found"), "status-4xx"),
    ServerFault("answer 503", ok(status="503 Service Unavailable"), "status-5xx"),
    ServerFault("redirect", _AWAY, "none"),
)

TAKEN_FOR = {
    ("niquests", "reset in the body"): "protocol",  # urllib3-future takes a reset for the end of the stream
}
"""What a library makes of a fault and its client can't tell: by distribution and fault. README names them."""

SENT_AGAIN = {
    ("pycurl", "used connection closed"),
    ("pycurl", "used connection reset"),
}
"""Faults after which a library sends the request again, whatever it is told: by distribution. README names them."""

# First those of a new connection. After each of the others a good answer, so that the next fault meets a used
# connection, and a spoiled one is seen.
SCRIPT = (*FAULTS[:2], *(part for fault in FAULTS[2:] for part in (GOOD, fault)), GOOD)


def _answer(seen: Seen) -> Answer:
    number = seen.target.removeprefix("/")
    return SCRIPT[int(number)].answer if number.isdigit() else ok()


def _do(strategy: Strategy) -> Evidence:
    workload = Workload(path="/{k}", requests=len(SCRIPT), concurrency=1, warmup=0, timeout=TIMEOUT)
    return serve(strategy, workload, _answer)


def of_kind(number: int, expected: str, found: Evidence) -> str:
    """Whether request `number` was recorded as an error of that kind, or as ``none``."""
    if number not in found.samples.numbers:
        return "it was not recorded"
    kind = found.kind(number)
    if kind == expected:
        return ""
    own = list(found.kinds.values()).count(kind) == 1  # of a kind's errors the first message is kept
    told = f" ({found.samples.examples[kind]})" if own else ""
    return f"its kind is {expected}, and it is recorded as {kind}{told}"


def _goes_on(found: Evidence) -> str:
    for number, part in enumerate(SCRIPT):
        if part is GOOD and (broken := of_kind(number, "none", found)):
            return f"the request after {SCRIPT[number - 1].name!r}: {broken}"
    return ""


def _sent_once(found: Evidence) -> str:
    twice = [target for target, times in Counter(seen.target for seen in found.server.seen).items() if times > 1]
    distribution = client_row(found.strategy.client).distribution
    faults = [SCRIPT[int(target.removeprefix("/"))].name for target in twice if target[1:].isdigit()]
    faults = [fault for fault in faults if (distribution, fault) not in SENT_AGAIN]
    return f"the request was sent again after: {', '.join(faults)}" if faults else ""


def _not_followed(found: Evidence) -> str:
    return "the redirect was followed" if any(seen.target == "/elsewhere" for seen in found.server.seen) else ""


def _in_time(found: Evidence) -> str:
    for number, part in enumerate(SCRIPT):
        seconds = found.server.let_go.get(f"/{number}")
        if isinstance(part.answer, Stall) and (seconds is None or seconds > TIMEOUT + SLACK):
            how = "was not sent" if seconds is None else f"was waited for {seconds:.1f} s"
            return f"the time limit is {TIMEOUT:g} s; {part.name!r} {how}"
    return ""


def _kept(fault: ServerFault, found: Evidence) -> str:
    """Whether the fault met the connection of the request before, where one after the other is sent on kept ones."""
    number = _NUMBERS[fault.name]
    if found.strategy.policy == "per call" or executor_row(found.strategy.executor).many:
        return ""
    on = {seen.target: seen.connection for seen in reversed(found.server.seen)}
    if on.get(f"/{number}") == on.get(f"/{number - 1}"):
        return ""
    return "a new connection was opened after a good answer, where one is kept"


def _made_of(fault: ServerFault, found: Evidence) -> str:
    if fault.name.startswith("used") and (broken := _kept(fault, found)):
        return broken
    distribution = client_row(found.strategy.client).distribution
    return of_kind(_NUMBERS[fault.name], TAKEN_FOR.get((distribution, fault.name), fault.kind), found)


_NUMBERS = {fault.name: SCRIPT.index(fault) for fault in FAULTS}


def _kind(found: Evidence, check: str) -> str | None:
    return found.kind(_NUMBERS[check]) if check in _NUMBERS else None


FAULT_CHECKS: dict[str, Check[Evidence]] = {
    **{fault.name: partial(_made_of, fault) for fault in FAULTS},
    "goes on after a fault": _goes_on,
    "nothing sent again": _sent_once,
    "redirect not followed": _not_followed,
    "method GET": method,
    "time limit kept": _in_time,
}

DRILL = Drill("faults", _do, FAULT_CHECKS, kind=_kind)
