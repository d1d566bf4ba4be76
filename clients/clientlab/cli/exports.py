"""The options of `clientlab report` that write files, and its limits."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from clientlab.errors import LabError
from clientlab.judging.thresholds import ThresholdResult, judge_limits, limit
from clientlab.reports import as_csv, as_junit, as_markdown, thresholds
from clientlab.results.document import Run

_Command = TypeVar("_Command", bound=Callable[..., Any])
_FILE = click.Path(dir_okay=False, allow_dash=True)
_STDOUT = "-"
THRESHOLD_FAILED = 1


def exports(command: _Command) -> _Command:
    """Add the options `csv`, `markdown`, `junit`, `texts` and `strict` to a command."""
    for option in reversed((
        click.option("--csv", type=_FILE, help="Write one row per trial to this file; - is standard output."),
        click.option(
            "--markdown", type=_FILE, is_flag=False, flag_value=_STDOUT,
            help="Write Markdown to this file, or to standard output if no file is given; place it after RUN.",
        ),
        click.option("--junit", type=_FILE, help="Write arms, claims and limits as JUnit XML to this file."),
        click.option(
            "--fail-on", "texts", multiple=True, metavar="LIMIT",
            help="Exit with code 1 if an arm is surely beyond: 'p99 > 50ms', 'throughput < 1000', 'errors > 0'. "
            "Repeatable.",
        ),
        click.option(
            "--strict", is_flag=True, help="Judge --fail-on by the median over rounds instead of its whole interval."
        ),
    )):  # fmt: skip
        command = option(command)
    return command


def export(run: Run, formats: dict[str, Any]) -> tuple[bool, int]:
    """Write the chosen formats. Returns whether one went to standard output, and the exit code. Raises LabError."""
    limits = [limit(text) for text in formats["texts"]]
    if formats["strict"] and not limits:
        raise LabError("--strict without --fail-on: it changes how --fail-on is judged; leave it out")
    judged = judge_limits(run, limits, strict=formats["strict"])
    renderers: dict[str, Callable[[], str]] = {
        "csv": lambda: as_csv.render(run),
        "markdown": lambda: as_markdown.render(run),
        "junit": lambda: as_junit.render(run, judged),
    }
    chosen = {name: formats[name] for name in renderers if formats[name] is not None}
    if list(chosen.values()).count(_STDOUT) > 1:
        raise LabError(f"--{' and --'.join(chosen)}: only one of them can go to standard output; name a file")
    taken = _STDOUT in chosen.values()
    for name, target in chosen.items():
        if target == _STDOUT:
            click.echo(renderers[name](), nl=False)
        else:
            _write(Path(target), renderers[name](), name)
            click.echo(f"{name}: {target}", err=taken)
    return taken, _judge(judged, stderr=taken)


def _judge(judged: list[ThresholdResult], *, stderr: bool) -> int:
    for line in thresholds.lines(judged):
        click.echo(line, err=stderr)
    return THRESHOLD_FAILED if any(one.outcome == "failed" for one in judged) else 0


def _write(path: Path, text: str, name: str) -> None:
    try:
        path.write_text(text, encoding="utf-8", errors="replace")
    except OSError as error:
        raise LabError(f"--{name} {path}: {error.strerror}; name another file") from error
