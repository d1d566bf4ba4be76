"""Results of checks, and the mistakes that make them fail: one mistake of a client often breaks a dozen checks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple


class Cause(NamedTuple):
    """A mistake and its fix. Mistakes of an earlier `stage` can make any check of a later one fail."""

    stage: int
    text: str
    fix: str


# fmt: off
WRONG_URL = Cause(1, "the client requests another URL", "request the whole URL as it is given, with its query")
CACHED = Cause(1, "requests are answered without being sent", "switch off caches, and send one request per call")
SENT_TWICE = Cause(1, "the client sends each request more than once", "let each call send one request")
RETRIES = Cause(2, "the client retries failed requests", "switch off retries: urllib3.PoolManager(retries=False)")
REDIRECTS = Cause(2, "the client follows redirects",
                  "switch redirects off: redirect=False (urllib3), allow_redirects=False (requests, aiohttp), "
                  "follow_redirects=False (httpx)")
COMPRESSED = Cause(2, "the client asks for compressed answers",
                   "send the headers of request.headers and no others (Accept-Encoding: identity)")
HEADERS = Cause(2, "the client loses or changes headers", "send the headers of request.headers unchanged")
METHOD = Cause(2, "the client uses another method", "use request.method")
BODY = Cause(2, "the client loses or changes the body of the request", "send request.body unchanged")
PART_READ = Cause(2, "the client does not return the whole body", "read each answer to its end; return its raw bytes")
SWALLOWED = Cause(3, "the client returns a success for failed requests",
                  "return the status of the response, and let exceptions pass")
UNVERIFIED = Cause(4, "TLS certificates are not verified", "leave verification on, with the CAs of budget.ca_file")
ANY_NAME = Cause(4, "the host name of TLS certificates is not verified", "leave the check of host names on")
UNTRUSTED = Cause(4, "the client does not trust the CA that the lab names",
                  "load budget.ca_file: ca_certs (urllib3), verify (requests), ssl.create_default_context(cafile=…)")
NO_TIME_LIMIT = Cause(4, "the client has no time limit, or a longer one", "pass timeout=budget.timeout to the library")
KEPT = Cause(4, "connections are kept, but the policy is 'per call'", "remove policy = 'per call'")
NOT_KEPT = Cause(4, "connections are not kept, or the pool is too small to keep them",
                 "make one session or pool in open(), for budget.connections connections; or state policy = 'per call'")
TOO_FEW = Cause(4, "requests wait for each other, for a small pool or a lock", "allow budget.connections in the pool")
TOO_MANY = Cause(4, "the client has more requests in flight than allowed",
                 "let each call send one request, and return when its answer is read")
ERRORS = Cause(4, "errors of connecting or TLS have another kind: 'errors' does not name the library's exceptions",
               'name them in "errors", the most specific first: (NewConnectionError, "connect"), (SSLError, "tls"), …')
SPOILED = Cause(4, "after a failure, the client goes on with a broken connection or a late answer",
                "close the connection whenever a request raises")
EXECUTOR = Cause(4, "the executor goes on after the duration, or loses requests",
                 "start no request after the end, and wait for those in flight")
PROCESS = Cause(4, "a process outlives the trial", "end all processes in close()")
COUNTS = Cause(5, "the lab and the server count different connections",
               "call opened() once for each connection that the library opens outside Python, and for no other")
# fmt: on

FIX = "-v lists all failed checks"
ITS_KIND = "its kind is "
"""The start of the message of a check that found an error of another kind."""


@dataclass(frozen=True)
class CheckResult:
    """The result of a check.

    `broken`: what the strategy breaks, in one sentence; empty if the check passed. `kind`: for a provoked fault, the
    kind of error that the strategy recorded. `unchecked`: why this client, or this machine, cannot be checked.
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
        """Whether only the kind of the error is wrong. A fault that is recorded as a success is worse than that."""
        return self.broken.startswith(ITS_KIND) and self.kind != "none"


def check(name: str, fine: object, message: str, cause: Cause | None = None, kind: str | None = None) -> CheckResult:
    """Return the result of a check with the message, unless the check is fine."""
    return CheckResult(name, kind=kind) if fine else CheckResult(name, message, cause, kind)


def causes_of(failed: Sequence[CheckResult]) -> list[Cause]:
    """Return the likely causes of failed checks, those of the earliest stage only: fix them first."""
    unknown = " ".join(f"unknown; the first failed check is {failed[0].check}: {failed[0].broken}".split())
    causes = dict.fromkeys(result.cause or Cause(6, unknown, FIX) for result in failed)
    return [cause for cause in causes if cause.stage == min(causes).stage]
