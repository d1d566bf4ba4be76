"""Retry policies: who sends a failed request again, when, and how often, as settings of a strategy.

    requests-session?retry=urllib3&attempts=3&statuses=503&backoff=100ms&jitter=full
    aiohttp@workers?retry=tenacity&attempts=5&budget=10%25

A policy is the library's own (`Retry` of urllib3, `retries` of httpx, aiohttp-retry), or a package around any client. A
setting that is not written has the default of the policy: that of the library, or what its users write.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from clientlab.settings import Setting, written
from clientlab.workload.delays import seconds

SETTING = "retry"
"""The setting that names the policy."""

KINDS_OF_SETTINGS = {
    SETTING: "str | None",
    "attempts": "int",
    "backoff": "str | int | float",
    "jitter": "str | None",
    "budget": "str | int | float | None",
    "retry_after": "bool",
    "retry_after_max": "str | int | float",
    "methods": "str | None",
    "statuses": "str | int | None",
    "errors": "bool",
}
"""Every setting of policies with its types."""

MOST_ATTEMPTS = 20
_MOST_SECONDS = 86_400.0
_IDEMPOTENT = "DELETE,GET,HEAD,OPTIONS,PUT,TRACE"
_OVERLOADED = "429,500,502,503,504"
_STORED = 10.0
"""The most retries that a budget saves up, as gRPC's `maxTokens` has it."""
_SERVER_ERRORS = "5xx"
_METHOD = re.compile(r"[A-Z]{1,20}", re.ASCII)
_SHARE = re.compile(r"(\d{1,3}(?:\.\d{1,9})?)%|(\d?\.\d{1,9}|[01])", re.ASCII)


@dataclass(frozen=True)
class PolicyKind:
    """A policy that exists. `defaults`: each setting that it has; `jitters`: values of `jitter`.

    `distribution`: the package that it needs beside the client's library; empty: none. `wrapper`: it goes around any
    client. `meaning`: for the table of docs/retries.md.
    """

    name: str
    meaning: str
    defaults: Mapping[str, Setting]
    jitters: tuple[str, ...] = ("none",)
    distribution: str = ""
    wrapper: bool = False


_URLLIB3: Mapping[str, Setting] = {
    "attempts": 4, "backoff": "0ms", "jitter": None, "retry_after": True, "retry_after_max": "21600s",
    "methods": _IDEMPOTENT, "statuses": None,
}  # fmt: skip
_AROUND: Mapping[str, Setting] = {"budget": None, "methods": "any", "statuses": _OVERLOADED, "errors": True}
_CONNECTS = "only connections that cannot be opened, at once and then after 0.5 s, 1 s, 2 s …"

POLICIES: dict[str, PolicyKind] = {
    kind.name: kind
    for kind in (
        PolicyKind(
            "urllib3", "`Retry` of urllib3: errors, `statuses`, and 413, 429 or 503 with `Retry-After`",
            _URLLIB3, ("none", "full"),
        ),
        PolicyKind("niquests", "`Retry` of urllib3-future, the same class", _URLLIB3, ("none", "full")),
        PolicyKind("httpx", f"`HTTPTransport(retries=…)`: {_CONNECTS}", {"attempts": 2}),
        PolicyKind("httpx2", f"`HTTPTransport(retries=…)`: {_CONNECTS}", {"attempts": 2}),
        PolicyKind(
            "aiohttp-retry", "`RetryClient` around the session: statuses, and exceptions if they are named",
            {
                "attempts": 3, "backoff": "100ms", "jitter": None, "methods": "any", "statuses": _SERVER_ERRORS,
                "errors": False,
            },
            ("none", "full"), "aiohttp-retry",
        ),
        PolicyKind(
            "tenacity", "`Retrying` around the call",
            {"attempts": 3, "backoff": "0ms", "jitter": None, **_AROUND}, ("none", "full"), "tenacity", wrapper=True,
        ),
        PolicyKind(
            "stamina", "`retry_context` around the call: at most 45 s, 5 s between two attempts",
            {"attempts": 10, "backoff": "100ms", "jitter": "added", **_AROUND}, ("none", "added"), "stamina",
            wrapper=True,
        ),
    )
}  # fmt: skip
"""Every policy beside `none`, in the order of tables."""

WRAPPERS = tuple(name for name, kind in POLICIES.items() if kind.wrapper)


@dataclass(frozen=True)
class RetryPolicy:
    """A policy with its settings. Times are in seconds.

    `attempts`: of one request in all. `budget`: retries, as a share of the requests; None: no limit. `methods`: None
    for any. `errors`: whether exceptions are retried, beside `statuses`.
    """

    kind: PolicyKind
    attempts: int
    backoff: float = 0.0
    jitter: str = "none"
    budget: float | None = None
    retry_after: bool = False
    retry_after_max: float = 0.0
    methods: frozenset[str] | None = None
    statuses: frozenset[int] = field(default=frozenset())
    errors: bool = True

    def repeats(self, method: str) -> bool:
        """Whether a request with this method may be sent again."""
        return self.methods is None or method in self.methods


def policy_of(given: Mapping[str, Any]) -> RetryPolicy | None:
    """The policy of a strategy's settings; None if nothing is sent again. Raises ValueError."""
    known = {key: value for key, value in given.items() if key in KINDS_OF_SETTINGS}
    name = known.pop(SETTING, None)
    if name is None:
        if known:
            raise ValueError(f"setting {next(iter(known))!r} needs a policy; write retry={' or '.join(POLICIES)}")
        return None
    kind = POLICIES.get(name)
    if kind is None:
        raise ValueError(f"setting {SETTING}={name}; there are none, {', '.join(POLICIES)}")
    for key in known:
        if key not in kind.defaults:
            raise ValueError(f"setting {key!r}: {name} has none; it has {', '.join(kind.defaults)}")
    values = {**kind.defaults, **known}
    return RetryPolicy(kind, **{key: _read(kind, key, value) for key, value in values.items()})


def _read(kind: PolicyKind, key: str, value: Any) -> Any:
    """The value of a setting. Raises ValueError with what to write."""
    if key == "jitter":
        if (text := written(value)) not in kind.jitters:
            raise ValueError(f"setting jitter={text}; {kind.name} has {' or '.join(kind.jitters)}")
        return text
    reader = _READERS.get(key)
    try:
        return value if reader is None else reader(value)
    except ValueError as error:
        raise ValueError(f"setting {key}={written(value)}: {error}") from error


def _attempts(value: int) -> int:
    if not 1 <= value <= MOST_ATTEMPTS:
        raise ValueError(f"write 1 to {MOST_ATTEMPTS}")
    return value


def _seconds(value: str | float) -> float:
    found = seconds(value) if isinstance(value, str) else float(value)
    if not 0 <= found <= _MOST_SECONDS:
        raise ValueError(f"write 0 to {_MOST_SECONDS:.0f}s")
    return found


def _budget(value: str | float | None) -> float | None:
    if value is None:
        return None
    found = _SHARE.fullmatch(str(value))
    share = -1.0 if found is None else float(found[1]) / 100 if found[1] else float(found[2])
    if not 0 <= share <= 1:
        raise ValueError("write 0 to 1, or a share as 10%25, which is 10% in a query")
    return share


def _methods(value: str | None) -> frozenset[str] | None:
    if value == "any":
        return None
    if value is None:
        raise ValueError("no request would be sent again; write any, or methods as GET,PUT, or leave out retry")
    found = value.split(",")
    if wrong := [one for one in found if not _METHOD.fullmatch(one)]:
        raise ValueError(f"{wrong[0]!r} is no method; write any, or methods as GET,PUT")
    return frozenset(found)


def _statuses(value: str | float | None) -> frozenset[int]:
    found: set[int] = set()
    for one in [] if value is None else str(value).split(","):
        if one == _SERVER_ERRORS:
            found |= set(range(500, 600))
        elif re.fullmatch(r"[45]\d\d", one, re.ASCII):
            found.add(int(one))
        else:
            raise ValueError(f"{one!r} is no status of an error; write 400 to 599 as 429,503, or 5xx")
    return frozenset(found)


_READERS: dict[str, Callable[[Any], Any]] = {
    "attempts": _attempts, "backoff": _seconds, "retry_after_max": _seconds, "budget": _budget, "methods": _methods,
    "statuses": _statuses,
}  # fmt: skip


class RetryBudget:
    """Limits retries to a share of the requests: a request saves that share of a retry, and a retry takes a whole one.

    Threads may share it. At most ten retries are saved up, so that the budget of a good hour is not spent in a bad
    second.
    """

    def __init__(self, share: float | None) -> None:
        self._share = share
        self._saved = 0.0
        self._lock = threading.Lock()

    def request(self) -> None:
        """A request begins."""
        if self._share is not None:
            with self._lock:
                self._saved = min(_STORED, self._saved + self._share)

    def take(self) -> bool:
        """Whether a retry may be sent, which is then spent."""
        if self._share is None:
            return True
        with self._lock:
            if self._saved < 1 - 1e-9:
                return False
            self._saved -= 1
            return True
