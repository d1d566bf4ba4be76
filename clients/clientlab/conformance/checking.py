"""What all checks share: a measured trial, a result, and the causes of failures.

One mistake in a client often breaks a dozen checks, so a failed check names its likely
cause.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from clientlab.conformance.server import (
    CA_FILE,
    CountingServer,
    Respond,
    counting_server,
    server_context,
)
from clientlab.observing import measurement
from clientlab.observing.samples import Samples
from clientlab.observing.stream_times import StreamTimes
from clientlab.results.trial import Outcome
from clientlab.strategies import ClientSpec, Strategy, client_spec
from clientlab.trial.context import PeerAddress, TrialContext
from clientlab.workload.workload import Workload


class Cause(NamedTuple):
    """A mistake and its fix.

    A mistake of an earlier `stage` can make checks of all later stages fail.
    """

    stage: int
    text: str
    fix: str


WRONG_URL = Cause(
    1,
    "the client requests another URL",
    "request the whole URL unchanged, with its query",
)
CACHED = Cause(
    1,
    "requests are answered without being sent",
    "switch off caches, and send one request per call",
)
SENT_TWICE = Cause(
    1, "the client sends each request more than once", "let each call send one request"
)
RETRIES = Cause(
    2,
    "the client retries failed requests",
    "remove your own loops; retries=False (urllib3), session._retry_connection = False"
    " (aiohttp)",
)
REDIRECTS = Cause(
    2,
    "the client follows redirects",
    "redirect=False (urllib3), allow_redirects=False (requests, aiohttp),"
    " follow_redirects=False (httpx)",
)
COMPRESSED = Cause(
    2,
    "the client asks for compressed answers",
    "send request.headers only (Accept-Encoding: identity)",
)
HEADERS = Cause(
    2,
    "the client loses, changes or adds headers",
    "send the headers of request.headers and no others",
)
COOKIES = Cause(
    2, "the client stores cookies", "use no cookie jar, or one that stays empty"
)
METHOD = Cause(2, "the client uses another method", "use request.method")
BODY = Cause(
    2,
    "the client loses or changes the body of the request",
    "send request.body unchanged",
)
PART_READ = Cause(
    2,
    "the client does not return the whole body",
    "read each answer to its end; return its raw bytes",
)
SWALLOWED = Cause(
    3,
    "the client returns a success for failed requests",
    "return the status, and let exceptions pass",
)
UNVERIFIED = Cause(
    4,
    "TLS certificates are not verified",
    "leave verification on, with the CAs of budget.ca_file",
)
ANY_NAME = Cause(
    4,
    "the host name of TLS certificates is not verified",
    "leave the check of host names on",
)
UNTRUSTED = Cause(
    4,
    "the client does not trust the CA that the lab names",
    "load budget.ca_file: ca_certs (urllib3), verify (requests),"
    " ssl.create_default_context(cafile=…)",
)
NO_TIME_LIMIT = Cause(
    4,
    "the client has no time limit, or a longer one",
    "pass timeout=budget.timeout to the library",
)
KEPT = Cause(
    4,
    "connections are kept, but the policy is 'per call'",
    "remove policy = 'per call'",
)
NOT_KEPT = Cause(
    4,
    "connections are not kept, or the pool is too small to keep them",
    "make one session or pool in open(), for budget.connections connections; or state"
    " policy = 'per call'",
)
TOO_FEW = Cause(
    4,
    "requests wait for each other, for a small pool or a lock",
    "allow budget.connections in the pool",
)
TOO_MANY = Cause(
    4,
    "the client has more requests in flight than allowed",
    "let each call send one request, and wait",
)
ERRORS = Cause(
    4,
    "errors of connecting or TLS have another kind: 'errors' does not name the"
    " library's exceptions",
    'name them in "errors", the most specific first: (NewConnectionError, "connect"),'
    ' (SSLError, "tls"), …',
)
SPOILED = Cause(
    4,
    "after a failure, the client reuses the connection",
    "close the connection if a request raises",
)
EXECUTOR = Cause(
    4,
    "the executor goes on after the duration, or loses requests",
    "start no request after the end, and wait for those in flight",
)
PROCESS = Cause(4, "a process outlives the trial", "end all processes in close()")
COUNTS = Cause(
    5,
    "the lab and the server count different connections",
    "call opened() once for each connection that the library opens outside Python, and"
    " for no other",
)


FIX = "-v lists all failed checks"
# How the message begins if a check found an error of another kind.
_ITS_KIND = "its kind is "


@dataclass(frozen=True)
class CheckResult:
    """The result of a check.

    `broken`: what the strategy does wrong; empty if the check passed.

    `kind`: for a provoked fault, the recorded kind of error. `unchecked`: why the check
    is impossible here.
    """

    check: str
    broken: str = ""
    cause: Cause | None = None
    kind: str | None = None
    unchecked: str = ""

    @property
    def passed(self) -> bool:
        return not self.broken

    @property
    def another_kind(self) -> bool:
        """Whether only the kind of the error is wrong.

        Recording a fault as a success is worse than that.
        """
        return self.broken.startswith(_ITS_KIND) and self.kind != "none"


def judge(
    check: str,
    passed: object,
    message: str,
    cause: Cause | None = None,
    kind: str | None = None,
) -> CheckResult:
    """Return the result of a check: with message and cause only if it did not pass."""
    if passed:
        return CheckResult(check, kind=kind)
    return CheckResult(check, message, cause, kind)


def causes_of(failed: Sequence[CheckResult]) -> list[Cause]:
    """Return the likely causes of failed checks that are to be fixed first.

    Those are the causes of the earliest stage.
    """
    first = f"{failed[0].check}: {failed[0].broken}"
    unknown = " ".join(f"unknown; the first failed check is {first}".split())
    causes = dict.fromkeys(result.cause or Cause(6, unknown, FIX) for result in failed)
    return [cause for cause in causes if cause.stage == min(causes).stage]


@dataclass(frozen=True)
class Evidence:
    """A measured trial, and what reached the server."""

    strategy: Strategy
    workload: Workload
    server: CountingServer
    outcome: Outcome
    samples: Samples
    streams: StreamTimes | None = None

    @property
    def client(self) -> ClientSpec:
        return client_spec(self.strategy.client)

    @cached_property
    def numbers(self) -> list[int]:
        """The numbers of the recorded requests."""
        return list(map(int, self.samples.numbers))

    @cached_property
    def kinds(self) -> dict[int, str]:
        """The kinds of the errors by the numbers of their requests."""
        codes = self.samples.records["error"].tolist()
        recorded = zip(self.numbers, codes, strict=True)
        return {number: self.samples.kinds[code] for number, code in recorded if code}

    def judge_kind(self, check: str, number: int, expected: str) -> CheckResult:
        """Check the recorded kind of request `number`."""
        kind = self.kinds.get(number, "none")
        if number not in self.numbers:
            return CheckResult(check, "it was not recorded", kind=kind)
        message = f"{_ITS_KIND}{expected}, and it is recorded as {kind}"
        # Only the first message of a kind is kept.
        if self.samples.errors.get(kind) == 1:
            message += f" ({self.samples.examples[kind]})"
        cause = SWALLOWED if kind == "none" else None
        return judge(check, kind == expected, message, cause, kind)


_Watch = Callable[[Path], None]
"""Is called with the trial's folder every half second while it runs; may raise."""


def measure(
    strategy: Strategy,
    workload: Workload,
    server: CountingServer,
    watch: _Watch = lambda _: None,
    on_start: Callable[[], None] = lambda: None,
) -> Evidence:
    """Measure one trial; the server forgets its warm-up. Raise TrialFailed.

    `on_start` is called before the first request after the warm-up.
    """

    def start() -> None:
        server.reset()
        on_start()

    with tempfile.TemporaryDirectory() as folder:
        address = PeerAddress(server.url, ca_file=CA_FILE)
        context = TrialContext(strategy, workload, address, folder)
        events = measurement.TrialEvents(
            on_start=start, on_progress=lambda *_: watch(Path(folder))
        )
        trial = measurement.measure(context, events=events)
    return Evidence(
        strategy, workload, server, trial.outcome, trial.samples, trial.streams
    )


def measure_against(
    answer: Respond,
    strategy: Strategy,
    workload: Workload,
    hold: float = 0.0,
    watch: _Watch = lambda _: None,
) -> Evidence:
    """Measure one trial against a server with these answers."""
    with serve(answer, strategy, hold) as server:
        return measure(strategy, workload, server, watch)


def serve(
    answer: Respond, strategy: Strategy, hold: float = 0.0
) -> AbstractContextManager[CountingServer]:
    """Run a server with these answers, with TLS if the client speaks HTTP/2."""
    tls = [server_context(version="h2")] if speaks_http2(strategy) else []
    return counting_server(answer, hold, tls)


def speaks_http2(strategy: Strategy) -> bool:
    """Return whether the strategy speaks HTTP/2 only, and therefore only over TLS."""
    return client_spec(strategy.client).http == "2"
