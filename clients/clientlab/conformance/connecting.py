"""The scenarios of connecting: no process listens, or none accepts the connection."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable, Iterator
from functools import partial

from clientlab.conformance.evidence import Evidence, measure, speaks_http2
from clientlab.conformance.faults import SLACK, of_kind
from clientlab.conformance.scenario import CannotProvoke, Scenario
from clientlab.strategies import Strategy
from clientlab.workload.workload import Workload

TIMEOUT = 1.5
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
            workload = Workload(requests=1, concurrency=1, warmup=0, timeout=TIMEOUT)
            scheme = "https" if speaks_http2(strategy) else "http"
            return measure(strategy, workload, f"{scheme}://127.0.0.1:{number}")

    return do


def _kind(found: Evidence, check: str) -> str | None:
    return found.kind(0) if check in {_REFUSED, _UNANSWERED} else None


def _in_time(found: Evidence) -> str:
    longest = max(found.samples.records["seconds"].tolist(), default=0.0)
    return "" if longest < TIMEOUT + SLACK else f"the time limit is {TIMEOUT:g} s; connecting took {longest:.1f} s"


def _not_opened(found: Evidence) -> str:
    begun, opened = found.outcome.connections_begun, found.outcome.connections_opened
    if (begun, opened) == (1, 0):
        return ""
    return f"one connection is to be begun, and none opened; the lab counted {begun} begun and {opened} opened"


REFUSED = Scenario(
    "refused",
    _do(refusing),
    {_REFUSED: partial(of_kind, 0, "connect"), "refused connection not opened": _not_opened},
    frozenset({"client"}),
    kind=_kind,
)
UNANSWERED = Scenario(
    "unanswered",
    _do(unanswering),
    {_UNANSWERED: partial(of_kind, 0, "timeout-connect"), "time limit of connecting": _in_time},
    frozenset({"client"}),
    kind=_kind,
)
