"""Settings of an upstream, read from the environment (`MOCKUPSTREAM_*`) when it starts.

Empty ones are ignored.
"""

from __future__ import annotations

import contextlib
import resource
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from mockupstream import delays
from mockupstream.refusals import Limit

Value = TypeVar("Value")


class BadVariableError(Exception):
    """An environment variable has an invalid value.

    The text is one line that names it.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The default behaviour of requests without parameters, and the limits."""

    delay: delays.ParsedDelay
    most_delay: Limit
    most_body: Limit
    most_size: Limit
    any_path: bool
    trace: Path | None = None


def read_settings(environment: Mapping[str, str]) -> Settings:
    """Read the behaviour and the limits. Raise BadVariableError.

    `MOCKUPSTREAM_DELAY` is the delay of requests that do not ask for one.
    `MOCKUPSTREAM_MAX_DELAY` is a time; `_MAX_BODY` and `_MAX_SIZE` are bytes of a
    request's and of a response's body. With `_ANY_PATH=true`, every path is answered
    like `/`. `_TRACE` is the folder of the log of `trace`.
    """
    most_delay = read_variable(environment, "MAX_DELAY", "60s", delays.seconds)
    delay = read_variable(environment, "DELAY", "0", delays.parse)
    if delay.stated > most_delay:
        raise BadVariableError(
            f"MOCKUPSTREAM_DELAY: {delay} is beyond MOCKUPSTREAM_MAX_DELAY,"
            f" {most_delay:g} s"
        )
    trace = environment.get("MOCKUPSTREAM_TRACE")
    body, size = (
        Limit(
            read_variable(environment, name, str(256 << 20), between(0, 10**12)),
            "bytes",
            f"MOCKUPSTREAM_{name}",
        )
        for name in ("MAX_BODY", "MAX_SIZE")
    )
    return Settings(
        delay=delay,
        most_delay=Limit(most_delay, "s", "MOCKUPSTREAM_MAX_DELAY"),
        most_body=body,
        most_size=size,
        any_path=read_variable(
            environment, "ANY_PATH", "false", one_of("true", "false")
        )
        == "true",
        trace=Path(trace) if trace else None,
    )


def raise_open_files() -> None:
    """Raise the limit of open files of this process and its workers to the system's
    hard limit.
    """
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    with contextlib.suppress(
        ValueError, OSError
    ):  # macOS reports an unlimited one and accepts less
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def or_exit(
    read: Callable[[Mapping[str, str]], Value], environment: Mapping[str, str]
) -> Value:
    """Return the result of `read`, or print the name of the wrong variable and exit
    with code 2.
    """
    try:
        return read(environment)
    except BadVariableError as error:
        print(error, file=sys.stderr)  # noqa: T201
        sys.exit(2)


def read_variable(
    environment: Mapping[str, str],
    name: str,
    default: str,
    convert: Callable[[str], Value],
) -> Value:
    """Return the converted value of `MOCKUPSTREAM_<name>`.

    Raise BadVariableError if `convert` raises ValueError.
    """
    variable = f"MOCKUPSTREAM_{name}"
    try:
        return convert(environment.get(variable) or default)
    except ValueError as error:
        raise BadVariableError(f"{variable}: {error}") from error


def between(least: int, most: int) -> Callable[[str], int]:
    """Return a parser for whole numbers in this range."""

    def convert(text: str) -> int:
        if text.isdecimal() and len(text) <= 18 and least <= int(text) <= most:
            return int(text)
        raise ValueError(f"{text!r} is not a whole number from {least} to {most}")

    return convert


def one_of(*names: str) -> Callable[[str], str]:
    """Return a parser for one of these words."""

    def convert(text: str) -> str:
        if text not in names:
            raise ValueError(f"{text!r} is neither {' nor '.join(names)}")
        return text

    return convert
