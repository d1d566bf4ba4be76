"""Retries as a setting of a strategy: those of a library, and those around a client.

Imports no HTTP library, and tenacity, stamina and aiohttp-retry only where they are
used. Defaults are those that a library documents, except for the number of attempts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from clientlab.settings import Setting, write_setting
from clientlab.workload.values import Statuses, find_time_without_unit, parse_time
from clientlab.workload.workload import Request

DEFAULT_STATUSES = Statuses.parse("429,500,502,503,504")
"""Of libraries that document none."""

DEFAULT_ATTEMPTS = 3
RETRY_EXTRA = "retry"  # the extra of pyproject.toml that installs the libraries
_STAMINA_LONGEST_WAIT = 5.0  # seconds, stamina's default

Send = Callable[..., Any]
"""Returns the status and the body of a request, or an awaitable of both."""


class SettingKind(NamedTuple):
    """A setting of retries: its type as an annotation, and for users."""

    annotation: str
    written: str
    default: str = "the library's"


RETRY_SETTINGS = {
    "retry": SettingKind("str", "own, tenacity or stamina", "no retries"),
    "attempts": SettingKind("int", "number", str(DEFAULT_ATTEMPTS)),
    "backoff": SettingKind("float | str", "time"),
    "jitter": SettingKind("bool", "true or false"),
    "respect_retry_after": SettingKind("bool", "true or false"),
    "statuses": SettingKind(
        "int | str", "statuses", "the library's, or 429, 500, 502 to 504"
    ),
    "methods": SettingKind("str", "methods"),
}


class Way(NamedTuple):
    """A way to retry: its name for users, and what can be set besides `attempts`."""

    title: str
    settings: tuple[str, ...] = ()
    waits: bool = True  # also without `backoff`
    distribution: str = ""


_COMMON = ("backoff", "jitter", "statuses", "methods")
WAYS = {
    "urllib3": Way("urllib3's Retry", (*_COMMON, "respect_retry_after"), waits=False),
    "connecting": Way("httpx's transport, which retries connecting only,"),
    "aiohttp-retry": Way("aiohttp-retry", _COMMON, distribution="aiohttp-retry"),
    "tenacity": Way("tenacity", _COMMON, waits=False, distribution="tenacity"),
    "stamina": Way("stamina", _COMMON, distribution="stamina"),
}
AROUND = ("tenacity", "stamina")
"""Ways that wrap the `send` of any client."""


@dataclass(frozen=True)
class Retry:
    """How often and when a request is sent again. None: as the library documents."""

    way: str
    """A key of `WAYS`."""

    attempts: int = DEFAULT_ATTEMPTS
    """In all."""

    backoff: float | None = None
    """Base of the exponential wait, in seconds."""

    jitter: bool | None = None
    respect_retry_after: bool | None = None
    statuses: Statuses | None = None
    methods: tuple[str, ...] | None = None

    limit: float | None = None
    """Seconds of a call after which tenacity and stamina begin no attempt."""


def read_retry(given: Mapping[str, Setting], own: str) -> Retry | None:
    """Return the retries that these settings ask for, or None if there are none.

    Raise ValueError for a setting that is not possible. `own`: the way of the client's
    library, or nothing.
    """
    settings = dict(given)
    asked = settings.pop("retry", None)
    if asked is None:
        for key in settings:
            raise ValueError(f"{key} needs retry=own, retry=tenacity or retry=stamina")
        return None
    if asked not in {"own", *AROUND}:
        raise ValueError(f"retry={asked}: write own, tenacity or stamina")
    if asked == "own" and not own:
        raise ValueError(
            "retry=own is for clients of aiohttp, httpx, httpx2, niquests, requests and"
            " urllib3 that keep connections; retry=tenacity wraps any client"
        )
    name = own if asked == "own" else str(asked)
    _check_abilities(WAYS[name], settings)
    return Retry(name, **_read_values(settings))


def _check_abilities(way: Way, settings: Mapping[str, Setting]) -> None:
    for key, value in settings.items():
        if key not in {"attempts", *way.settings} and value is not False:
            raise ValueError(
                f"{way.title} has no {key} here; leave out {key}={write_setting(value)}"
            )
    if settings.get("jitter") and "backoff" not in settings and not way.waits:
        raise ValueError(f"{way.title} does not wait by default; add backoff=100ms")


def _read_values(settings: Mapping[str, Setting]) -> dict[str, Any]:
    values: dict[str, Any] = dict(settings)
    if settings.get("attempts") == 0:
        raise ValueError("attempts=0 sends nothing; write 1 or more, in all")
    if "backoff" in settings:
        values["backoff"] = _read_time(str(settings["backoff"]))
    if "statuses" in settings:
        text = re.sub("[+ ]", ",", str(settings["statuses"]))
        values["statuses"] = Statuses.parse(text)
    if "methods" in settings:
        values["methods"] = tuple(re.split("[+ ,]+", str(settings["methods"]).upper()))
    return values


def _read_time(text: str) -> float:
    if find_time_without_unit(text):
        raise ValueError(f"backoff={text} has no unit; write {text}ms or {text}s")
    return parse_time(text)


# What a library brings


def make_urllib3_retry(retry_class: Any, retry: Retry) -> Any:
    """Return an object of urllib3's `Retry`, or of its fork's.

    The last response is returned, whatever its status.
    """
    options: dict[str, Any] = {}
    if retry.backoff is not None:
        options["backoff_factor"] = retry.backoff
    if retry.jitter:
        options["backoff_jitter"] = retry.backoff
    if retry.respect_retry_after is not None:
        options["respect_retry_after_header"] = retry.respect_retry_after
    if retry.methods is not None:
        options["allowed_methods"] = retry.methods
    statuses = retry.statuses or DEFAULT_STATUSES
    return retry_class(
        total=retry.attempts - 1,
        status_forcelist=statuses.codes,
        raise_on_status=False,
        **options,
    )


def wrap_aiohttp_session(session: Any, retry: Retry) -> Any:
    """Return a session of aiohttp that retries, by aiohttp-retry.

    It retries all exceptions, which its documentation promises and its code does not do
    by default (issue 114 of aiohttp_retry).
    """
    import aiohttp_retry  # noqa: PLC0415 - an extra

    options: dict[str, Any] = {"exceptions": {Exception}}
    if retry.backoff is not None:
        options["start_timeout"] = retry.backoff
    if retry.statuses is not None:
        options["statuses"] = retry.statuses.codes
        options["retry_all_server_errors"] = False
    if retry.methods is not None:
        options["methods"] = set(retry.methods)
    retry_class: Any = aiohttp_retry.ExponentialRetry
    if retry.jitter:
        retry_class = aiohttp_retry.JitterRetry
    return aiohttp_retry.RetryClient(
        session, retry_options=retry_class(retry.attempts, **options)
    )


# Around a client


def retry_around(send: Send, retry: Retry, *, awaited: bool) -> Send:
    """Return a `send` that retries with tenacity or stamina.

    It ends as its last attempt did.
    """
    if retry.way == "tenacity":
        retried = _with_tenacity(send, retry, awaited=awaited)
    elif awaited:
        retried = _with_stamina_async(send, retry)
    else:
        retried = _with_stamina(send, retry)
    methods = retry.methods
    if methods is None:
        return retried

    def send_by_method(request: Request) -> Any:
        if request.method in methods:
            return retried(request)
        return send(request)

    return send_by_method


def _with_tenacity(send: Send, retry: Retry, *, awaited: bool) -> Send:
    import tenacity  # noqa: PLC0415 - an extra

    wait: Any = tenacity.wait_none()
    if retry.jitter:
        wait = tenacity.wait_random_exponential(multiplier=retry.backoff or 0.0)
    elif retry.backoff is not None:
        wait = tenacity.wait_exponential(multiplier=retry.backoff)
    stop: Any = tenacity.stop_after_attempt(retry.attempts)
    if retry.limit is not None:
        stop |= tenacity.stop_before_delay(retry.limit)
    statuses = retry.statuses or DEFAULT_STATUSES
    is_failed = tenacity.retry_if_exception_type()
    is_refused = tenacity.retry_if_result(lambda answer: answer[0] in statuses)
    retrying_class: Any = tenacity.AsyncRetrying if awaited else tenacity.Retrying
    retrying = retrying_class(
        stop=stop,
        wait=wait,
        retry=is_failed | is_refused,
        retry_error_callback=lambda state: state.outcome.result(),
    )
    return retrying.wraps(send)  # type: ignore[no-any-return]


class _RetriedStatus(Exception):
    """A response whose status is retried: stamina retries exceptions only."""

    def __init__(self, answer: Any) -> None:
        super().__init__(f"status {answer[0]}")
        self.answer = answer


def _stamina_options(retry: Retry) -> dict[str, Any]:
    from stamina import instrumentation  # noqa: PLC0415 - an extra

    # By default, each retry is logged, and counted by the lab's Prometheus client.
    instrumentation.set_on_retry_hooks([])
    options: dict[str, Any] = {"attempts": retry.attempts}
    if retry.limit is not None:
        options["timeout"] = retry.limit
    if retry.backoff is not None:
        options["wait_initial"] = retry.backoff
        options["wait_max"] = max(retry.backoff, _STAMINA_LONGEST_WAIT)
    if retry.jitter is False:
        options["wait_jitter"] = 0.0
    return options


def _with_stamina(send: Send, retry: Retry) -> Send:
    import stamina  # noqa: PLC0415

    call = stamina.RetryingCaller(**_stamina_options(retry)).on(Exception)
    statuses = retry.statuses or DEFAULT_STATUSES

    def attempt(request: Request) -> Any:
        answer = send(request)
        if answer[0] in statuses:
            raise _RetriedStatus(answer)
        return answer

    def retried(request: Request) -> Any:
        try:
            return call(attempt, request)
        except _RetriedStatus as last:
            return last.answer

    return retried


def _with_stamina_async(send: Send, retry: Retry) -> Send:
    import stamina  # noqa: PLC0415

    call = stamina.AsyncRetryingCaller(**_stamina_options(retry)).on(Exception)
    statuses = retry.statuses or DEFAULT_STATUSES

    async def attempt(request: Request) -> Any:
        answer = await send(request)
        if answer[0] in statuses:
            raise _RetriedStatus(answer)
        return answer

    async def retried(request: Request) -> Any:
        try:
            return await call(attempt, request)
        except _RetriedStatus as last:
            return last.answer

    return retried
