"""The scenarios of faults, of a server and of connecting: each has one error kind for every strategy.

No request is sent again.
"""

from __future__ import annotations

import contextlib
import socket
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial

from clientlab.conformance.evidence import Evidence, measure, serve, speaks_http2
from clientlab.conformance.same_work import method
from clientlab.conformance.scenario import ITS_KIND, TRIAL_FAILED, CannotProvoke, Check, Scenario
from clientlab.conformance.server import PATIENCE, Last, Reset, Seen, ServerAnswer, Stall, ok
from clientlab.measuring.trial_handle import TrialStalled
from clientlab.strategies import Strategy, client_spec, executor_spec
from clientlab.workload.workload import Workload

TIMEOUT = 0.5
REQUEST_LIMIT = PATIENCE + 5.0
"""Seconds: a client without a time limit waits as long as the server is silent; one that sends again takes longer."""

SLACK = 2.0
"""Seconds after the time limit from which a client is late; far more than a busy machine needs."""

_CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
_AWAY = b"HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n"


@dataclass(frozen=True)
class ServerFault:
    """One fault of a server, and its error kind; ``none`` for an answer that is no error."""

    name: str
    answer: ServerAnswer
    kind: str


_USED = "used connection"
"""The start of the names of faults that must meet the connection of the request before."""

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

_OVER_HTTP2 = (
    "no answer", "silence in the body", "truncated body", "truncated chunk", "malformed chunk", "answer 404",
    "answer 503", "redirect",
)  # fmt: skip
"""Faults that Caddy passes on. For the others it answers 502 itself, or sends the request again."""


@dataclass(frozen=True)
class Script:
    """Faults in turn, each after a good answer unless it must meet a new connection. The last answer is good."""

    parts: tuple[ServerFault, ...]

    def scenario(self, name: str, fits: Callable[[Strategy], bool]) -> Scenario[Evidence]:
        """One trial with all faults, and the checks of each."""
        faults = [part for part in self.parts if part is not GOOD]
        checks: dict[str, Check[Evidence]] = {
            **{fault.name: partial(self._made_of, fault) for fault in faults},
            "goes on after a fault": self._goes_on,
            "nothing sent again": self._sent_once,
            "redirect not followed": _not_followed,
            "method GET": method,
            "time limit kept": self._in_time,
        }
        return Scenario(name, self._do, checks, fits, self._kind)

    def _do(self, strategy: Strategy) -> Evidence:
        """The trial. If silence makes it fail, it is done again without: the other faults show what the client does."""
        try:
            return self._with_silence(strategy)
        except TrialStalled as failure:
            return replace(serve(strategy, self._workload(), self._answer_at_once), stalled=str(failure))

    def _workload(self) -> Workload:
        return Workload(
            path="/{k}", requests=len(self.parts), concurrency=1, warmup=0, timeout=TIMEOUT, request_limit=REQUEST_LIMIT
        )

    def _with_silence(self, strategy: Strategy) -> Evidence:
        workload = self._workload()
        found = serve(strategy, workload, self._answer)
        # A machine that is busy elsewhere makes a time-out of any answer, and a client that opens connections ahead
        # takes a new one. A client that always takes too long, or keeps no connection, does so again.
        again = self._late(found) or self._not_kept(found)
        return serve(strategy, workload, self._answer) if again else found

    def _late(self, found: Evidence) -> bool:
        return any(
            found.kind(number).startswith("timeout")
            for number, part in enumerate(self.parts)
            if not part.kind.startswith("timeout")
        )

    def _not_kept(self, found: Evidence) -> bool:
        return any(_kept(number, found) for number, part in enumerate(self.parts) if part.name.startswith(_USED))

    def _answer(self, seen: Seen) -> ServerAnswer:
        number = seen.target.removeprefix("/")
        return self.parts[int(number)].answer if number.isdigit() else ok()

    def _answer_at_once(self, seen: Seen) -> ServerAnswer:
        answer = self._answer(seen)
        return ok() if isinstance(answer, Stall) else answer

    def _number(self, name: str) -> int:
        return [part.name for part in self.parts].index(name)

    def _made_of(self, fault: ServerFault, found: Evidence) -> str:
        number = self._number(fault.name)
        if found.stalled and isinstance(fault.answer, Stall):
            return f"{TRIAL_FAILED}{found.stalled}"
        if fault.name.startswith(_USED) and (broken := _kept(number, found)):
            return broken
        kinds = dict(client_spec(found.strategy.client).quirks.fault_kinds)
        return of_kind(number, kinds.get(fault.name, fault.kind), found)

    def _goes_on(self, found: Evidence) -> str:
        for number, part in enumerate(self.parts):
            if part is GOOD and (broken := of_kind(number, "none", found)):
                before = repr(self.parts[number - 1].name) if number else "none"
                return f"the request after {before}: {broken}"
        return ""

    def _sent_once(self, found: Evidence) -> str:
        count = Counter(seen.target for seen in found.server.seen)
        twice = [target for target, times in count.items() if times > 1]
        permitted = client_spec(found.strategy.client).quirks.resends_after
        faults = [self.parts[int(target.removeprefix("/"))].name for target in twice if target[1:].isdigit()]
        faults = [fault for fault in faults if fault not in permitted]
        if not faults:
            return ""
        reached = f"{count.total()} requests reached the server for {found.requests}"
        return f"{reached}: some were sent again, after: {', '.join(faults)}"

    def _in_time(self, found: Evidence) -> str:
        if found.stalled:
            return f"{TRIAL_FAILED}{found.stalled}"
        for number, part in enumerate(self.parts):
            seconds = found.server.let_go.get(f"/{number}")
            if isinstance(part.answer, Stall) and (seconds is None or seconds > TIMEOUT + SLACK):
                how = "was not sent" if seconds is None else f"was waited for {seconds:.1f} s"
                return f"the time limit is {TIMEOUT:g} s; {part.name!r} {how}"
        return ""

    def _kind(self, found: Evidence, check: str) -> str | None:
        part = next((part for part in self.parts if part.name == check), None)
        if part is None or (found.stalled and isinstance(part.answer, Stall)):
            return None
        return found.kind(self._number(check))


def of_kind(number: int, expected: str, found: Evidence) -> str:
    """Empty if request `number` was recorded with the kind, else what was recorded. ``none``: no error."""
    if number not in found.samples.numbers:
        return "it was not recorded"
    kind = found.kind(number)
    if kind == expected:
        return ""
    own = list(found.kinds.values()).count(kind) == 1  # of a kind's errors the first message is kept
    told = f" ({found.samples.examples[kind]})" if own else ""
    return f"{ITS_KIND}{expected}, and it is recorded as {kind}{told}"


def _not_followed(found: Evidence) -> str:
    return "the redirect was followed" if any(seen.target == "/elsewhere" for seen in found.server.seen) else ""


def _kept(number: int, found: Evidence) -> str:
    """Empty if a request met the connection of the one before it, or if the strategy need not."""
    # Only strategies that send one request after the other on kept connections must.
    if found.strategy.policy == "per call" or executor_spec(found.strategy.executor).concurrent:
        return ""
    on = {seen.target: seen.connection for seen in reversed(found.server.seen)}
    if on.get(f"/{number}") == on.get(f"/{number - 1}"):
        return ""
    return "a new connection was opened after a good answer, where one is kept"


def _after_good(faults: Iterable[ServerFault]) -> tuple[ServerFault, ...]:
    """Each fault after a good answer, so that it meets a used connection and a spoiled connection is found."""
    return (*(part for fault in faults for part in (GOOD, fault)), GOOD)


SCENARIO = Script((*FAULTS[:2], *_after_good(FAULTS[2:]))).scenario(
    "faults", lambda strategy: not speaks_http2(strategy)
)
OVER_HTTP2 = Script(_after_good(fault for fault in FAULTS if fault.name in _OVER_HTTP2)).scenario(
    "faults over HTTP/2", speaks_http2
)


CONNECT_TIMEOUT = 1.5
_REFUSED = "connection refused"
_UNANSWERED = "connecting not answered"
_LOOK = 0.05
_FILLING = 4  # connections; a queue of length 0 holds one or two


@contextlib.contextmanager
def refusing() -> Iterator[int]:
    """A port of loopback without a listener, reserved while the context is open."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


@contextlib.contextmanager
def unanswering() -> Iterator[int]:
    """A port of loopback whose queue is full: Linux does not answer further attempts.

    Raises CannotProvoke where the system accepts or refuses them all the same.
    """
    with socket.socket() as listener, contextlib.ExitStack() as stack:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(_FILLING):
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                filler.connect(listener.getsockname())
        if _answers(listener.getsockname()):
            raise CannotProvoke("this system answers an attempt to connect to a full queue")
        yield listener.getsockname()[1]


def _answers(address: tuple[str, int]) -> bool:
    with socket.socket() as attempt:
        attempt.settimeout(_LOOK)
        try:
            attempt.connect(address)
        except TimeoutError:
            return False
        except OSError:
            return True
    return True


def _do(port: Callable[[], contextlib.AbstractContextManager[int]]) -> Callable[[Strategy], Evidence]:
    def do(strategy: Strategy) -> Evidence:
        with port() as number:
            workload = Workload(requests=1, concurrency=1, warmup=0, timeout=CONNECT_TIMEOUT)
            scheme = "https" if speaks_http2(strategy) else "http"
            return measure(strategy, workload, f"{scheme}://127.0.0.1:{number}")

    return do


def _kind(found: Evidence, check: str) -> str | None:
    return found.kind(0) if check in {_REFUSED, _UNANSWERED} else None


def _in_time(found: Evidence) -> str:
    longest = max(found.samples.records["seconds"].tolist(), default=0.0)
    return (
        ""
        if longest < CONNECT_TIMEOUT + SLACK
        else f"the time limit is {CONNECT_TIMEOUT:g} s; connecting took {longest:.1f} s"
    )


def _not_opened(found: Evidence) -> str:
    begun, opened = found.outcome.connections_begun, found.outcome.connections_opened
    if begun == 0 and client_spec(found.strategy.client).url_only:
        return ""  # the function's library connects outside Python
    if (begun, opened) == (1, 0):
        return ""
    return f"one connection is to be begun, and none opened; the lab counted {begun} begun and {opened} opened"


REFUSED = Scenario(
    "refused",
    _do(refusing),
    {_REFUSED: partial(of_kind, 0, "connect"), "refused connection not opened": _not_opened},
    kind=_kind,
)
UNANSWERED = Scenario(
    "unanswered",
    _do(unanswering),
    {_UNANSWERED: partial(of_kind, 0, "timeout-connect"), "time limit of connecting": _in_time},
    kind=_kind,
)
