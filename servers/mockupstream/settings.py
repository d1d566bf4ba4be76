"""Settings of an upstream, read from the environment (`MOCKUPSTREAM_*`) when it starts. Empty ones count as not set."""

from __future__ import annotations

import contextlib
import resource
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from mockupstream import delays
from mockupstream.refusals import Limit

_Value = TypeVar("_Value")


class BadVariableError(Exception):
    """An environment variable that cannot be read; the text is one line that names it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The default behaviour of requests without parameters, and the limits."""

    delay: delays.ParsedDelay
    most_delay: Limit
    most_body: Limit
    most_size: Limit


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """The settings of gunicorn, for `gunicorn_config.py`."""

    framework: str
    bind: str
    workers: int
    threads: int
    worker_class: str
    keep_alive: int
    backlog: int
    graceful_timeout: int


def read_settings(environment: Mapping[str, str]) -> Settings:
    """Read the behaviour and the limits. Raise BadVariableError.

    `MOCKUPSTREAM_DELAY` is the delay of requests that ask for none. `MOCKUPSTREAM_MAX_DELAY` is a time, `_MAX_BODY`
    and `_MAX_SIZE` are bytes of a request's and of a response's body.
    """
    most_delay = _read(environment, "MAX_DELAY", "60s", delays.seconds)
    delay = _read(environment, "DELAY", "0", delays.parse)
    if delay.stated > most_delay:
        raise BadVariableError(f"MOCKUPSTREAM_DELAY: {delay} is beyond MOCKUPSTREAM_MAX_DELAY, {most_delay:g} s")
    body, size = (
        Limit(_read(environment, name, str(256 << 20), _between(0, 10**12)), "bytes", f"MOCKUPSTREAM_{name}")
        for name in ("MAX_BODY", "MAX_SIZE")
    )
    return Settings(
        delay=delay, most_delay=Limit(most_delay, "s", "MOCKUPSTREAM_MAX_DELAY"), most_body=body, most_size=size
    )


def read_serving(environment: Mapping[str, str]) -> Serving:
    """Read what gunicorn needs. Raise BadVariableError."""
    return Serving(
        framework=_read(environment, "FRAMEWORK", "aiohttp", _one_of("flask", "aiohttp")),
        bind=_read(environment, "BIND", "127.0.0.1:8000", str),
        workers=_read(environment, "WORKERS", "4", _between(1, 256)),
        threads=_read(environment, "THREADS", "25", _between(1, 4096)),
        worker_class=_read(environment, "WORKER_CLASS", "gthread", _one_of("gthread", "sync")),
        keep_alive=_read(environment, "KEEP_ALIVE", "75", _between(1, 86_400)),
        backlog=_read(environment, "BACKLOG", "2048", _between(1, 65_535)),
        graceful_timeout=_read(environment, "GRACEFUL_TIMEOUT", "3", _between(1, 3600)),
    )


def raise_open_files() -> None:
    """Raise the limit of open files of this process and its workers to the system's hard limit."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    with contextlib.suppress(ValueError, OSError):  # macOS calls it unlimited and takes less
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def or_exit(read: Callable[[Mapping[str, str]], _Value], environment: Mapping[str, str]) -> _Value:
    """Return the result of `read`, or print the name of the wrong variable and exit with code 2."""
    try:
        return read(environment)
    except BadVariableError as error:
        print(error, file=sys.stderr)  # noqa: T201
        sys.exit(2)


def _read(environment: Mapping[str, str], name: str, default: str, convert: Callable[[str], _Value]) -> _Value:
    variable = f"MOCKUPSTREAM_{name}"
    try:
        return convert(environment.get(variable) or default)
    except ValueError as error:
        raise BadVariableError(f"{variable}: {error}") from error


def _between(least: int, most: int) -> Callable[[str], int]:
    def convert(text: str) -> int:
        if text.isdecimal() and len(text) <= 18 and least <= int(text) <= most:
            return int(text)
        raise ValueError(f"{text!r} is not a whole number from {least} to {most}")

    return convert


def _one_of(*names: str) -> Callable[[str], str]:
    def convert(text: str) -> str:
        if text not in names:
            raise ValueError(f"{text!r} is neither {' nor '.join(names)}")
        return text

    return convert
