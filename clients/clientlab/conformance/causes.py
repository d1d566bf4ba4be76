"""The likely causes of failed checks, with their fixes: one mistake of a client often breaks a dozen checks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from clientlab.conformance.scenario import TRIAL_FAILED, CheckResult

_LOAD = frozenset({"1,000 requests", "one request", "seven requests", "method, headers, body", "recorded once"}) | {
    "whole body read",
    "connection policy",
    "as many in flight",
    "never more in flight",
}
"""Checks of requests that all get a good answer. "one request" and "seven requests" sum up the others."""

_SILENCE = frozenset({"no answer", "silence in the headers", "silence in the body", "time limit kept"})
_CONNECTING = frozenset({"connecting not answered", "time limit of connecting"})
_COUNTS = frozenset({"connections counted", "refused connection not opened", "connections over TLS counted"})
_BODIES = frozenset({"reset in the body", "truncated body", "truncated chunk", "malformed chunk"})
_TLS = frozenset({"certificates verified", "requests over TLS", "connections over TLS counted", "method DELETE"})

EVERYTHING = frozenset({"*"})
"""All checks: a client that sends the wrong requests passes none of them."""


@dataclass(frozen=True)
class Cause:
    """A mistake, and what repairs it.

    It is likely if one of `checks` failed, with one of `texts` in its message, and no earlier cause explains that.
    `explains`: the further checks that it makes fail.
    """

    cause: str
    fix: str
    checks: frozenset[str]
    texts: tuple[str, ...] = ("",)
    explains: frozenset[str] = frozenset()

    def found_in(self, failed: Sequence[CheckResult]) -> bool:
        """Whether these failed checks point to it."""
        return any(map(self._names, failed))

    def accounts_for(self, result: CheckResult) -> bool:
        """Whether it makes that check fail."""
        return self.explains == EVERYTHING or result.check in self.explains or self._names(result)

    def _names(self, result: CheckResult) -> bool:
        return result.check in self.checks and any(text in result.broken for text in self.texts)


CAUSES = (
    Cause(
        "the client requests another URL, perhaps without the query",
        "request the whole URL as it is given, with its query",
        _LOAD,
        ("not asked for",),
        explains=EVERYTHING,
    ),
    Cause(
        "requests are answered without being sent, perhaps from a cache",
        "switch caching off, and send one request for each call",
        _LOAD,
        ("never sent",),
        explains=EVERYTHING,
    ),
    Cause(
        "the client sends each request more than once",
        "let each call send one request",
        _LOAD,
        ("sent more than once",),
        explains=EVERYTHING,
    ),
    Cause(
        "the client sends a request again when it failed (retries)",
        "switch retries off, as in urllib3.PoolManager(retries=False)",
        frozenset({"nothing sent again"}),
        explains=_SILENCE | _COUNTS | {"time limit of connecting"},
    ),
    Cause(
        "the client follows redirects",
        "switch redirects off: redirect=False (urllib3), allow_redirects=False (requests, aiohttp), "
        "follow_redirects=False (httpx)",
        frozenset({"redirect not followed"}),
        explains=frozenset({"redirect", "method GET"}),
    ),
    Cause(
        "the client asks for compressed answers",
        "send the headers of request.headers and no others (Accept-Encoding: identity)",
        _LOAD,
        ("header accept-encoding",),
        frozenset({"one request", "seven requests"}),
    ),
    Cause(
        "the client loses or changes headers",
        "send the headers of request.headers unchanged",
        _LOAD,
        ("header ",),
        frozenset({"one request", "seven requests"}),
    ),
    Cause(
        "the client uses another method",
        "use request.method",
        _LOAD | {"method GET", "method PUT", "method HEAD", "method DELETE"},
        ("the method is ",),
        frozenset({"one request", "seven requests"}),
    ),
    Cause(
        "the client loses or changes the body of the request",
        "send request.body unchanged",
        _LOAD,
        (" reached the server",),
        frozenset({"one request", "seven requests"}),
    ),
    Cause(
        "the client does not read, or does not return, the whole body",
        "read each answer to its end and return its bytes, undecoded",
        _LOAD,
        (" were read", "JSONDecodeError"),
        _BODIES | {"connection policy"},
    ),
    Cause(
        "the client returns a success for failed requests",
        "return the status of the response, and let exceptions pass",
        frozenset({"answer 404", "answer 503", "closed before an answer", "connection refused"}),
        ("recorded as none",),
        _SILENCE | _CONNECTING | _TLS | _COUNTS | {"goes on after a fault"},
    ),
    Cause(
        "the client returns another status than the server's",
        "return the status of the response",
        _LOAD,
        ("all answers are 200",),
    ),
    Cause(
        "TLS certificates are not verified",
        "leave verification on, with the CAs of budget.ca_file",
        frozenset({"certificate of another CA"}),
        ("bytes were sent",),
        _TLS | {"certificate of another name"},
    ),
    Cause(
        "the host name of TLS certificates is not verified",
        "leave the check of host names on",
        frozenset({"certificate of another name"}),
        ("bytes were sent",),
        _TLS,
    ),
    Cause(
        "the client does not trust the CA that the lab names",
        "load the CAs of budget.ca_file: ca_certs (urllib3), verify (requests), ssl.create_default_context(cafile=…)",
        frozenset({"requests over TLS"}),
        ("; 0 did",),
        _TLS,
    ),
    Cause(
        "the client has no time limit, or too long a one",
        "pass timeout=budget.timeout to the library",
        _SILENCE | _CONNECTING,
        explains=_SILENCE | _CONNECTING,
    ),
    Cause(
        "connections are kept, but the policy is 'per call'",
        "remove policy = 'per call'",
        _LOAD,
        ("is its policy",),
        _COUNTS,
    ),
    Cause(
        "connections are not kept, or the pool is too small to keep them",
        "make one session or pool in open(), for budget.connections connections; or state policy = 'per call'",
        _LOAD | {"used connection closed", "used connection reset"},
        ("kept",),
    ),
    Cause(
        "requests wait for each other: the pool is too small, or there is a lock",
        "make the pool as large as budget.connections",
        _LOAD,
        ("never more than",),
        _LOAD,
    ),
    Cause(
        "the client has more requests in flight than allowed",
        "let each call send one request, and return when its answer is read",
        _LOAD,
        ("may be in flight at once",),
        _LOAD,
    ),
    Cause(
        "errors of connecting or TLS have another kind: 'errors' does not name the library's exceptions",
        'name them in "errors", the most specific first: (NewConnectionError, "connect"), (SSLError, "tls"), …',
        frozenset({"refused connection not opened", "certificates verified"}),
        ("the lab counted 1 begun and 1 opened", "errors of kind tls; recorded are"),
    ),
    Cause(
        "the lab and the server count different connections",
        "call opened() once for each connection that the library opens outside Python, and for no other",
        _COUNTS | _LOAD,
        ("the lab counted",),
        _COUNTS,
    ),
    Cause(
        "after a failure, the client goes on with a broken connection or a late answer",
        "close the connection whenever a request raises",
        frozenset({"goes on after a fault"}),
    ),
    Cause(
        "the executor goes on after the duration, or loses requests",
        "start no request after the end, and wait for those in flight",
        frozenset({"ends on time", "all of a duration"}),
    ),
    Cause(
        "a process outlives the trial",
        "end all processes in close()",
        frozenset({"no process left"}),
    ),
)  # fmt: skip
"""The most specific first."""


def causes_of(failed: Sequence[CheckResult]) -> list[tuple[str, str]]:
    """Cause and fix of each likely cause, the most specific first. Where none is known, the first failure is quoted."""
    for result in failed:
        if result.check in _LOAD and result.broken.startswith(TRIAL_FAILED):  # so nothing else can work
            return [_quoted(result)]
    found: list[tuple[str, str]] = []
    left = list(failed)
    for one in CAUSES:
        if one.found_in(left):
            found.append((one.cause, one.fix))
            left = [result for result in left if not one.accounts_for(result)]
    return found or [_quoted(result) for result in left[:1]]


def _quoted(result: CheckResult) -> tuple[str, str]:
    """The message of a failed check. Some say behind a semicolon what to do."""
    message = " ".join(result.broken.split())
    if not message.startswith(TRIAL_FAILED):
        return f"unknown; the first failed check is {result.check}: {message}", _FIX
    cause, _, fix = message.removeprefix(TRIAL_FAILED).partition("; ")
    return cause, fix or _FIX


_FIX = "-v lists all failed checks"
