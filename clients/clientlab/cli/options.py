"""Types of option values, options that several commands share, and completion.

Modules of commands import the rest of the lab in their functions, so that `--help` and completion stay fast.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from clientlab.reports.files import CHART as CHART_FILE
from clientlab.reports.files import JUNIT as JUNIT_FILE
from clientlab.reports.files import PAGE, OutputFile
from clientlab.workload.arrivals import Stages, rate_of

_Command = TypeVar("_Command", bound=Callable[..., Any])

FILE = click.Path(dir_okay=False, path_type=Path)


class Parsed(click.ParamType[Any]):
    """A value that is written as a text. `parse` raises ValueError with what to write. `name`: for the help."""

    def __init__(self, name: str, parse: Callable[[str], Any]) -> None:
        self.name = name
        self._parse = parse

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return self._parse(value) if isinstance(value, str) else value
        except ValueError as error:
            self.fail(f"{error}.", param, ctx)


def each_of(parse: Callable[[str], float]) -> Callable[[str], tuple[float, ...]]:
    """Return a function that parses one value, or several of an axis: 35ms, or 1ms,20ms,100ms."""
    return lambda text: tuple(parse(part.strip()) for part in text.split(","))


def share(text: str) -> float:
    """Parse a share between 0 and 1: 3% or 0.03."""
    try:
        found = float(text.strip().removesuffix("%")) / (100 if text.strip().endswith("%") else 1)
    except ValueError:
        found = 0.0
    if not 0 < found < 1:
        raise ValueError(f"{text!r} is not a share between 0 and 1; write 3% or 0.03")
    return found


def rate_or_stages(text: str) -> float | Stages:
    """Parse a rate: 500/s; or several, each with the time from which it holds: 0s:100/s,30s:1000/s."""
    return Stages.parse(text) if ":" in text else rate_of(text)


def conditions(text: str) -> Any:
    """Parse the conditions of a search."""
    from clientlab.results.conditions import Conditions

    return Conditions.parse(text)


def body(text: str) -> str:
    """Return a request body: the text itself, or that of ``@FILE``."""
    try:
        return Path(text[1:]).read_text(encoding="utf-8") if text.startswith("@") else text
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{text}: {error}") from error


def pairs(separator: str) -> Callable[..., dict[str, str]]:
    """Return a callback that makes a mapping of texts such as ``NAME=PATH`` or ``Name: value``."""

    def mapping(_context: click.Context, option: click.Parameter, texts: tuple[str, ...]) -> dict[str, str]:
        found: dict[str, str] = {}
        for text in texts:
            name, mark, value = (part.strip() for part in text.partition(separator))
            if not name or not mark or name in found:
                message = f"{text!r}: write a name, {separator!r} and a value, and each name once."
                raise click.BadParameter(message, param=option)
            found[name] = value
        return found

    return mapping


def _output(file: OutputFile, text: str) -> Callable[[_Command], _Command]:
    """Return the option of a file that a report is written to, checked before anything is measured."""

    def checked(_context: click.Context, _option: click.Parameter, path: Path | None) -> Path | None:
        if path is not None:
            file.check(path)
        return path

    return click.option(file.option, type=FILE, callback=checked, help=text)


CHART = _output(CHART_FILE, "Draw charts to this file (.png or .svg).")
HTML = _output(PAGE, "Write a full report to this file (.html).")
JUNIT = _output(JUNIT_FILE, "Write JUnit XML to this file (.xml).")
JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
WHOLE = click.option("-v", "--all", "whole", is_flag=True, help="Show all columns and cautions, and the machine.")
FAIL_ON = click.option(
    "--fail-on", multiple=True, metavar="LIMIT",
    help="Exit with code 1 if an arm is beyond this limit: 'p99 > 50ms', 'throughput < 1000', 'ARM: errors > 0'; "
    "between environments: 'throughput -5%', 'errors +0'. Repeatable.",
)  # fmt: skip
OUT = click.option(
    "--out", "folder", type=click.Path(file_okay=False, path_type=Path), default=Path("results"), show_default=True,
    help="Folder of the runs.",
)  # fmt: skip


_EXPERIMENTS = Path(__file__).parents[1] / "experiments"


def complete_experiments(_context: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Complete the name of a bundled experiment, or of a file."""
    return _beginning([path.stem for path in sorted(_EXPERIMENTS.glob("*.toml"))], begun)


def complete_strategies(_context: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Complete the name of a listed strategy, or of a file with a client."""
    from clientlab.strategies import STRATEGIES

    return _beginning(STRATEGIES, begun)


def complete_runs(context: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Complete the name of a run in the results folder, the newest first, or of a file."""
    from clientlab.results.store import Store

    store = Store(context.params.get("folder") or Path("results"))
    return _beginning(["last", *reversed(store.names())], begun)


def _beginning(names: Iterable[str], begun: str) -> list[CompletionItem]:
    """Return the names that begin so, after the shell's files: click's script for bash forgets what is before those."""
    return [CompletionItem(begun, type="file"), *(CompletionItem(name) for name in names if name.startswith(begun))]
