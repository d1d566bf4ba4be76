"""What commands share: lines on the terminal, types of option values, options, and
completion.

Modules of commands import the rest of the lab in their functions, so that `--help` and
completion stay fast.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from clientlab.errors import LabError, PluginError
from clientlab.text import make_printable, mask_text
from clientlab.workload import values
from clientlab.workload.faults import Faults

_Command = TypeVar("_Command", bound=Callable[..., Any])


def echo(text: str, *, err: bool = False, nl: bool = True) -> None:
    """Print a text without a table. Those with tables are escaped in `output`."""
    click.echo(make_printable(text), err=err, nl=nl)


def say(line: LabError | str) -> None:
    """Print one line on standard error.

    The error of a plug-in follows the place where it was raised.
    """
    parts = str(line).split("\n", 1) if isinstance(line, PluginError) else [str(line)]
    echo(f"clientlab: {': '.join(' '.join(part.split()) for part in parts)}", err=True)


class TextType(click.ParamType[Any]):
    """A value that `parse` reads from a text.

    A ValueError says what to write instead.
    """

    def __init__(self, name: str, parse: Callable[[str], Any]) -> None:
        self.name = name  # shown in the help
        self._parse = parse

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> Any:
        try:
            return self._parse(value) if isinstance(value, str) else value
        except ValueError as error:
            self.fail(f"{error}.", param, ctx)


def _with_unit(parse: Callable[[str], Any]) -> Callable[[str], Any]:
    """Return a parser that refuses times without a unit: `--delay 20` may be meant as
    20 ms, and would be 20 s.
    """

    def parse_with_unit(text: str) -> Any:
        if bare := values.find_time_without_unit(text):
            raise ValueError(f"{bare} has no unit; write {bare}ms or {bare}s")
        return parse(text)

    return parse_with_unit


def _parse_each(parse: Callable[[str], float]) -> Callable[[str], tuple[float, ...]]:
    """Return a parser of one value or several, which make an axis: 35ms, or
    1ms,20ms,100ms.
    """
    return lambda text: tuple(parse(part.strip()) for part in text.split(","))


def _parse_rate(text: str) -> float | values.Stages:
    """Parse a rate, 500/s, or stages, each with the time when it begins:
    0s:100/s,30s:1000/s.
    """
    if ":" not in text:
        return values.parse_rate(text)
    for stage in text.split(","):
        _with_unit(str)(stage.partition(":")[0])
    return values.Stages.parse(text)


FILE = click.Path(dir_okay=False, path_type=Path)
TIME = TextType("time", _with_unit(values.parse_time))
DELAY = TextType("text", _with_unit(values.Delay.parse))
RATE = TextType("rate", _parse_rate)
STATUSES = TextType("statuses", values.Statuses.parse)
RTT = TextType("time", _parse_each(_with_unit(values.parse_rtt)))
BANDWIDTH = TextType("bandwidth", _parse_each(values.parse_bandwidth))


def read_body(text: str) -> str | bytes:
    """Return a request body: the text itself, or the content of ``@FILE``, which is
    bytes if it is not UTF-8.
    """
    if not text.startswith("@"):
        return text
    try:
        content = Path(text[1:]).read_bytes()
    except OSError as error:
        raise ValueError(f"{text}: {error}") from error
    try:
        return content.decode()
    except UnicodeDecodeError:
        return content


def pairs(separator: str) -> Callable[..., dict[str, str]]:
    """Return a callback that makes a mapping of texts such as ``NAME=PATH`` or ``Name:
    value``.
    """

    def make_mapping(
        _context: click.Context, option: click.Parameter, texts: tuple[str, ...]
    ) -> dict[str, str]:
        found: dict[str, str] = {}
        for text in texts:
            name, mark, value = (part.strip() for part in text.partition(separator))
            if not name or not mark or name in found:
                message = (
                    f"{text!r}: write a name, {separator!r} and a value, and each name"
                    " once."
                )
                raise click.BadParameter(message, param=option)
            found[name] = value
        return found

    return make_mapping


def read_faults(
    _context: click.Context, option: click.Parameter, texts: tuple[str, ...]
) -> Faults | None:
    """Return what all texts together describe; None without any."""
    if not texts:
        return None
    try:
        return Faults.parse("; ".join(texts))
    except ValueError as error:
        raise click.BadParameter(f"{error}.", param=option) from error


_NAMED_URL = re.compile(r"(?!https?:)(.*?)=(https?://.*)", re.DOTALL | re.IGNORECASE)
"""A name and a URL.

A text that begins with http is a URL as a whole, whose query may contain ``=http``.
"""


def read_urls(
    _context: click.Context, option: click.Parameter, texts: tuple[str, ...]
) -> dict[str, str]:
    """Return the URLs of servers by name.

    The name of a single one may be missing; it is then empty.
    """
    from clientlab.results.plan import VERSION_NAME

    found: dict[str, str] = {}
    for text in texts:
        match = _NAMED_URL.fullmatch(text)
        name, url = match.groups() if match else ("", text)
        if match and not re.fullmatch(VERSION_NAME, name):
            message = (
                f"{name!r}: a server's name has up to 32 letters, digits, '_', '.' and"
                " '-'."
            )
            raise click.BadParameter(message, param=option)
        if name in found or (not name and len(texts) > 1):
            message = (
                f"{mask_text(text)!r}: give each of several servers its own name:"
                " base=http://127.0.0.1:8001/."
            )
            raise click.BadParameter(message, param=option)
        found[name] = url
    return found


def _file_option(
    option: str, kind: str, endings: Sequence[str], text: str
) -> Callable[[_Command], _Command]:
    """Return the option of a file that a report is written to.

    The file is checked before anything is measured.
    """

    def check(
        _context: click.Context, _option: click.Parameter, path: Path | None
    ) -> Path | None:
        if path is not None and path.suffix not in endings:
            raise LabError(
                f"{kind} {path}: the name must end with {' or '.join(endings)}"
            )
        if path is not None and not path.parent.is_dir():
            raise LabError(
                f"{kind} {path}: there is no folder {path.parent}; make it, or change"
                f" {option}"
            )
        return path

    return click.option(option, type=FILE, callback=check, help=text)


CHART = _file_option(
    "--chart", "chart", (".png", ".svg"), "Draw charts to this file (.png or .svg)."
)
HTML = _file_option(
    "--html", "report", (".html", ".htm"), "Write a full report to this file (.html)."
)
JUNIT = _file_option(
    "--junit", "results", (".xml",), "Write JUnit XML to this file (.xml)."
)
JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
WHOLE = click.option(
    "-v",
    "--all",
    "whole",
    is_flag=True,
    help="Show all columns and cautions, and the machine.",
)
FAIL_ON = click.option(
    "--fail-on",
    multiple=True,
    metavar="LIMIT",
    help=(
        "Exit with code 1 if an arm is beyond this limit, and with 3 if it cannot be"
        " judged: 'p99 > 50ms', 'throughput < 1000', 'ARM: errors > 0'; between"
        " environments or servers: 'throughput -5%', 'p50 +2ms', 'errors +0'."
        " Repeatable."
    ),
)
OUT = click.option(
    "--out",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("results"),
    show_default=True,
    help="Folder of the runs.",
)


def complete_experiments(
    _context: click.Context, _parameter: click.Parameter, begun: str
) -> list[CompletionItem]:
    """Complete the name of a bundled experiment, or of a file."""
    folder = Path(__file__).parents[1] / "experiments"
    return _complete([path.stem for path in sorted(folder.glob("*.toml"))], begun)


def complete_strategies(
    _context: click.Context, _parameter: click.Parameter, begun: str
) -> list[CompletionItem]:
    """Complete the name of a listed strategy, or of a file with a client."""
    from clientlab.strategies import STRATEGIES

    return _complete(STRATEGIES, begun)


def complete_runs(
    context: click.Context, _parameter: click.Parameter, begun: str
) -> list[CompletionItem]:
    """Complete the name of a run in the results folder, the newest first,
    or of a file.
    """
    from clientlab.results.store import Store

    store = Store(context.params.get("folder") or Path("results"))
    return _complete(["last", *reversed(store.names())], begun)


def _complete(names: Iterable[str], begun: str) -> list[CompletionItem]:
    """Return the names with this beginning, after the files: click's script for bash
    forgets what precedes them.
    """
    return [
        CompletionItem(begun, type="file"),
        *(CompletionItem(name) for name in names if name.startswith(begun)),
    ]
