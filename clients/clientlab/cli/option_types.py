"""Types, shared options and completion of the command line."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from clientlab import units
from clientlab.experiments.experiment import ENVIRONMENT
from clientlab.experiments.file import bundled
from clientlab.results.capacity_search import MOST_OVERLOAD, Conditions
from clientlab.results.store import Store
from clientlab.strategies import STRATEGIES
from clientlab.workload.arrivals import Stages, rate_of
from clientlab.workload.delays import Delay, seconds
from clientlab.workload.link import bandwidth_of, rtt_of
from clientlab.workload.written import Written

_LIKE_A_SECRET = 16
"""Characters from which a misplaced text is not printed."""


class SecondsType(click.ParamType[float]):
    """A duration: 120ms, 2s, 1m or a number of seconds."""

    name = "time"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        try:
            return seconds(str(value))
        except ValueError as error:
            self.fail(f"{error}.", param, ctx)


SECONDS = SecondsType()


class RateType(click.ParamType[float]):
    """A rate above 0: 500/s, 500 or 30/m."""

    name = "rate"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        try:
            return rate_of(str(value))
        except ValueError as error:
            self.fail(f"{error}.", param, ctx)


RATE = RateType()


class WrittenType(click.ParamType[Written]):
    """A value that is written as a text, which its class parses."""

    def __init__(self, name: str, kind: type[Written]) -> None:
        self.name = name
        self._kind = kind

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Written:
        if isinstance(value, Written):
            return value
        try:
            return self._kind.parse(str(value))
        except ValueError as error:
            self.fail(f"{error}.", param, ctx)


CONDITIONS = WrittenType("conditions", Conditions)
STAGES = WrittenType("text", Stages)
DELAY = WrittenType("text", Delay)


class OverloadType(click.ParamType[tuple[float, ...]]):
    """Shares above 1: 110%,150%,200%."""

    name = "shares"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[float, ...]:
        if isinstance(value, tuple):
            return value
        found = re.fullmatch(r"\s*\d{3,4}(\.\d{1,3})?%(\s*,\s*\d{3,4}(\.\d{1,3})?%)*\s*", text := str(value))
        shares = tuple(float(part.strip(" %")) / 100 for part in text.split(",")) if found else ()
        if not shares or min(shares) <= 1 or max(shares) > MOST_OVERLOAD or len(set(shares)) < len(shares):
            self.fail(f"{text!r} are no shares beyond a capacity, each once; write 110%,150%,200%.", param, ctx)
        return shares


OVERLOAD = OverloadType()


class LinkPartType(click.ParamType[tuple[float, ...]]):
    """Round-trip times or bandwidths of links: 35ms, or an axis: 1ms,20ms,100ms."""

    def __init__(self, name: str, parse: Callable[[str], float]) -> None:
        self.name = name
        self._parse = parse

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[float, ...]:
        if isinstance(value, tuple):
            return value
        try:
            found = tuple(self._parse(part.strip()) for part in str(value).split(","))
        except ValueError as error:
            self.fail(f"{error}.", param, ctx)
        if len(set(found)) < len(found):
            self.fail(f"{value!r} has one value twice; write each once.", param, ctx)
        return found


ROUND_TRIPS = LinkPartType("time", rtt_of)
BANDWIDTHS = LinkPartType("bandwidth", bandwidth_of)


class ShareType(click.ParamType[float]):
    """A share between 0 and 1: 3% or 0.03."""

    name = "share"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        text = str(value).strip()
        try:
            share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
        except ValueError:
            share = 0.0
        if not 0 < share < 1:
            self.fail(f"{text!r} is not a share between 0 and 1; write 3% or 0.03.", param, ctx)
        return share


SHARE = ShareType()


class SizeType(click.ParamType[int]):
    """A number of bytes: 512MiB, 2GiB or 1000000."""

    name = "size"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        text = str(value).strip()
        found = re.fullmatch(r"(\d{1,15}(?:\.\d{1,9})?) ?([A-Za-z]*)", text)
        unit = units.WRITTEN["bytes"].get(found[2] or "B") if found else None
        if found is None or unit is None:
            self.fail(f"{text!r} is not a number of bytes; write 512MiB, 2GiB or 1000000.", param, ctx)
        return int(float(found[1]) * unit)


SIZE = SizeType()


class BodyType(click.ParamType[str]):
    """A request body: the text itself, or ``@FILE``."""

    name = "text"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        text = str(value)
        if not text.startswith("@"):
            return text
        try:
            return Path(text[1:]).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            self.fail(f"{text}: {error}.", param, ctx)


BODY = BodyType()


class MethodType(click.ParamType[str]):
    """An HTTP method in any case."""

    name = "text"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:  # noqa: ARG002 - click's
        return str(value).upper()


METHOD = MethodType()


def headers_of(_context: click.Context, option: click.Parameter, lines: tuple[str, ...]) -> dict[str, str] | None:
    """``Name: value`` lines as a mapping; None without a line. Raises click.BadParameter."""
    headers = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not name.strip():
            raise click.BadParameter(f"{_shown(line)} is not 'Name: value'.", param=option)
        headers[name.strip()] = value.strip()
    return headers or None


def _shown(line: str) -> str:
    """A line without a name may be a secret alone."""
    return f"a text of {len(line)} characters" if len(line) >= _LIKE_A_SECRET else repr(line)


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
    return [*_beginning(bundled(), begun), CompletionItem(begun, type="file")]


def complete_strategies(_context: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Listed strategies, and files with a client."""
    return [*_beginning(STRATEGIES, begun), CompletionItem(begun, type="file")]


def complete_runs(context: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Runs of the results folder, the newest first, and files."""
    store = Store(context.params.get("folder") or Path("results"))
    return [*_beginning(["last", *reversed(store.names())], begun), CompletionItem(begun, type="file")]


def _beginning(names: Iterable[str], begun: str) -> list[CompletionItem]:
    return [CompletionItem(name) for name in names if name.startswith(begun)]
