"""The drill of faults: whatever a server does wrong, each is of one kind for every strategy, and sent once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from clientlab.conformance.drill import Check, Drill
from clientlab.conformance.evidence import Evidence, serve, speaks_http2
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

_OVER_HTTP2 = (
    "no answer", "silence in the body", "truncated body", "truncated chunk", "malformed chunk", "answer 404",
    "answer 503", "redirect",
)  # fmt: skip
"""Faults that Caddy hands on. It answers 502 itself, or asks anew, where a server behind it says nothing sound."""


@dataclass(frozen=True)
class Script:
    """Faults in turn, each after a good answer unless it is to meet a new connection; the last is a good one."""

    parts: tuple[ServerFault, ...]

    def drill(self, name: str, fits: Callable[[Strategy], bool]) -> Drill[Evidence]:
        """One trial of them all, and the checks of each."""
        faults = [part for part in self.parts if part is not GOOD]
        checks: dict[str, Check[Evidence]] = {
            **{fault.name: partial(self._made_of, fault) for fault in faults},
            "goes on after a fault": self._goes_on,
            "nothing sent again": self._sent_once,
            "redirect not followed": _not_followed,
            "method GET": method,
            "time limit kept": self._in_time,
        }
        return Drill(name, self._do, checks, fits, self._kind)

    def _do(self, strategy: Strategy) -> Evidence:
        workload = Workload(path="/{k}", requests=len(self.parts), concurrency=1, warmup=0, timeout=TIMEOUT)
        found = serve(strategy, workload, self._answer)
        # A machine that is busy elsewhere for half a second makes a time-out of any answer. A client that takes too
        # long does so again.
        return serve(strategy, workload, self._answer) if self._late(found) else found

    def _late(self, found: Evidence) -> bool:
        return any(
            found.kind(number).startswith("timeout")
            for number, part in enumerate(self.parts)
            if not part.kind.startswith("timeout")
        )

    def _answer(self, seen: Seen) -> Answer:
        number = seen.target.removeprefix("/")
        return self.parts[int(number)].answer if number.isdigit() else ok()

    def _number(self, name: str) -> int:
        return [part.name for part in self.parts].index(name)

    def _made_of(self, fault: ServerFault, found: Evidence) -> str:
        number = self._number(fault.name)
        if fault.name.startswith("used") and (broken := _kept(number, found)):
            return broken
        distribution = client_row(found.strategy.client).distribution
        return of_kind(number, TAKEN_FOR.get((distribution, fault.name), fault.kind), found)

    def _goes_on(self, found: Evidence) -> str:
        for number, part in enumerate(self.parts):
            if part is GOOD and (broken := of_kind(number, "none", found)):
                before = repr(self.parts[number - 1].name) if number else "none"
                return f"the request after {before}: {broken}"
        return ""

    def _sent_once(self, found: Evidence) -> str:
        twice = [target for target, times in Counter(seen.target for seen in found.server.seen).items() if times > 1]
        distribution = client_row(found.strategy.client).distribution
        faults = [self.parts[int(target.removeprefix("/"))].name for target in twice if target[1:].isdigit()]
        faults = [fault for fault in faults if (distribution, fault) not in SENT_AGAIN]
        return f"the request was sent again after: {', '.join(faults)}" if faults else ""

    def _in_time(self, found: Evidence) -> str:
        for number, part in enumerate(self.parts):
            seconds = found.server.let_go.get(f"/{number}")
            if isinstance(part.answer, Stall) and (seconds is None or seconds > TIMEOUT + SLACK):
                how = "was not sent" if seconds is None else f"was waited for {seconds:.1f} s"
                return f"the time limit is {TIMEOUT:g} s; {part.name!r} {how}"
        return ""

    def _kind(self, found: Evidence, check: str) -> str | None:
        is_fault = any(part.name == check for part in self.parts)
        return found.kind(self._number(check)) if is_fault else None


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


def _not_followed(found: Evidence) -> str:
    return "the redirect was followed" if any(seen.target == "/elsewhere" for seen in found.server.seen) else ""


def _kept(number: int, found: Evidence) -> str:
    """Whether a request met the connection of the one before it, where one after the other is sent on kept ones."""
    if found.strategy.policy == "per call" or executor_row(found.strategy.executor).many:
        return ""
    on = {seen.target: seen.connection for seen in reversed(found.server.seen)}
    if on.get(f"/{number}") == on.get(f"/{number - 1}"):
        return ""
    return "a new connection was opened after a good answer, where one is kept"


def _after_good(faults: Iterable[ServerFault]) -> tuple[ServerFault, ...]:
    """So that the next fault meets a used connection, and a spoiled one is seen."""
    return (*(part for fault in faults for part in (GOOD, fault)), GOOD)


DRILL = Script((*FAULTS[:2], *_after_good(FAULTS[2:]))).drill("faults", lambda strategy: not speaks_http2(strategy))
OVER_HTTP2 = Script(_after_good(fault for fault in FAULTS if fault.name in _OVER_HTTP2)).drill(
    "faults over HTTP/2", speaks_http2
)
