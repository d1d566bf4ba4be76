"""Types, shared options and completion of the command line."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from clientlab.experiments.experiment import ENVIRONMENT
from clientlab.experiments.file import bundled
from clientlab.results.conditions import Conditions
from clientlab.results.store import Store
from clientlab.strategies import STRATEGIES
from clientlab.workload.arrivals import Stages, rate_of
from clientlab.workload.delays import Delay, seconds
from clientlab.workload.link import bandwidth_of, rtt_of


class ParsedType(click.ParamType[Any]):
    """A value that is written as a text. `parse` raises ValueError with what to write. `name`: for the help."""

    def __init__(self, name: str, parse: Callable[[str], Any]) -> None:
        self.name = name
        self._parse = parse

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value  # a default
        try:
            return self._parse(value)
        except ValueError as error:
            self.fail(f"{error}.", param, ctx)


def _each_of(parse: Callable[[str], float]) -> Callable[[str], tuple[float, ...]]:
    """A function that parses one value, or several of an axis: 35ms, or 1ms,20ms,100ms."""

    def parsed(text: str) -> tuple[float, ...]:
        found = tuple(parse(part.strip()) for part in text.split(","))
        if len(set(found)) < len(found):
            raise ValueError(f"{text!r} has one value twice; write each once")
        return found

    return parsed


def _more_than_0(text: str) -> float:
    """A time above 0, in seconds."""
    if not (found := seconds(text)):
        raise ValueError(f"{text!r}: write more than 0")
    return found


def _share(text: str) -> float:
    """A share between 0 and 1: 3% or 0.03."""
    text = text.strip()
    try:
        share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        share = 0.0
    if not 0 < share < 1:
        raise ValueError(f"{text!r} is not a share between 0 and 1; write 3% or 0.03")
    return share


def _rate_or_stages(text: str) -> float | Stages:
    """A rate: 500/s; or several, each with the time from which it holds: 0s:100/s,30s:1000/s."""
    return Stages.parse(text) if ":" in text else rate_of(text)


def _body(text: str) -> str:
    """A request body: the text itself, or that of ``@FILE``."""
    if not text.startswith("@"):
        return text
    try:
        return Path(text[1:]).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{text}: {error}") from error


SECONDS = ParsedType("time", seconds)
WAIT = ParsedType("time", _more_than_0)
RATE = ParsedType("rate", _rate_or_stages)
CONDITIONS = ParsedType("conditions", Conditions.parse)
DELAY = ParsedType("text", Delay.parse)
ROUND_TRIPS = ParsedType("time", _each_of(rtt_of))
BANDWIDTHS = ParsedType("bandwidth", _each_of(bandwidth_of))
SHARE = ParsedType("share", _share)
BODY = ParsedType("text", _body)
METHOD = ParsedType("text", str.upper)


def headers_of(_context: click.Context, option: click.Parameter, lines: tuple[str, ...]) -> dict[str, str] | None:
    """``Name: value`` lines as a mapping; None without a line. Raises click.BadParameter."""
    headers = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not name.strip():
            raise click.BadParameter(f"{line!r} is not 'Name: value'.", param=option)
        headers[name.strip()] = value.strip()
    return headers or None


def environments_of(_context: click.Context, option: click.Parameter, texts: tuple[str, ...]) -> dict[str, str] | None:
    """``NAME=PATH`` texts as a mapping; None without a text. Raises click.BadParameter."""
    found: dict[str, str] = {}
    for text in texts:
        name, _, path = text.partition("=")
        if not re.fullmatch(ENVIRONMENT, name) or not path:
            raise click.BadParameter(f"{text!r} is not NAME=PATH, with a NAME like old or py3.13.", param=option)
        if name in found:
            raise click.BadParameter(f"{name!r} is given twice; name each environment once.", param=option)
        found[name] = path
    return found or None


OUT = click.option(
    "--out",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("results"),
    show_default=True,
    help="Folder of the runs.",
)


def complete_experiments(_context: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Bundled experiments, and files."""
    return _beginning(bundled(), begun)


def complete_strategies(_context: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Listed strategies, and files with a client."""
    return _beginning(STRATEGIES, begun)


def complete_runs(context: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Runs of the results folder, the newest first, and files."""
    store = Store(context.params.get("folder") or Path("results"))
    return _beginning(["last", *reversed(store.names())], begun)


def _beginning(names: Iterable[str], begun: str) -> list[CompletionItem]:
    """The names that begin so, behind the shell's files: click's script for bash forgets what stands before those."""
    return [CompletionItem(begun, type="file"), *(CompletionItem(name) for name in names if name.startswith(begun))]
