"""A run in other formats: the options of `clientlab report` that write files, and its limits."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from clientlab.cli.words import console
from clientlab.errors import LabError
from clientlab.reports import as_csv, as_junit, as_markdown, compared
from clientlab.runs.document import Run
from clientlab.runs.thresholds import Judged, judge_limits, limit

_Command = TypeVar("_Command", bound=Callable[..., Any])
_FILE = click.Path(dir_okay=False, allow_dash=True)
_STDOUT = "-"
THRESHOLD_FAILED = 1


def exports(command: _Command) -> _Command:
    """The options; what was given comes as `csv`, `markdown`, `junit` and `texts`."""
    for option in reversed((
        click.option("--csv", type=_FILE, help="Write a row a trial to this file; - is standard output."),
        click.option(
            "--markdown", type=_FILE, is_flag=False, flag_value=_STDOUT,
            help="Write Markdown to this file, or to standard output; write it after RUN.",
        ),
        click.option("--junit", type=_FILE, help="Write arms, claims and limits as JUnit XML to this file."),
        click.option(
            "--fail-on", "texts", multiple=True, metavar="LIMIT",
            help="Exit 1 where an arm is beyond: 'p99 > 50ms', 'throughput < 1000', 'errors > 0'; may be repeated.",
        ),
    )):  # fmt: skip
        command = option(command)
    return command


def export(run: Run, words: dict[str, Any]) -> tuple[bool, int]:
    """Write what is asked for: whether standard output was taken by it, and the exit code. Raises LabError."""
    judged = judge_limits(run, [limit(text) for text in words["texts"]])
    renderers: dict[str, Callable[[], str]] = {
        "csv": lambda: as_csv.render(run),
        "markdown": lambda: as_markdown.render(run),
        "junit": lambda: as_junit.render(run, judged),
    }
    asked = {name: words[name] for name in renderers if words[name] is not None}
    if list(asked.values()).count(_STDOUT) > 1:
        raise LabError(f"--{' and --'.join(asked)}: only one of them can go to standard output; name a file")
    taken = _STDOUT in asked.values()
    for name, target in asked.items():
        if target == _STDOUT:
            click.echo(renderers[name](), nl=False)
        else:
            _write(Path(target), renderers[name](), name)
            console(stderr=taken).print(f"{name}: {target}", markup=False, highlight=False, soft_wrap=True)
    return taken, _judge(judged, stderr=taken)


def _judge(judged: list[Judged], *, stderr: bool) -> int:
    for line in compared.judged_lines(judged):
        console(stderr=stderr).print(line, markup=False, highlight=False, soft_wrap=True)
    return THRESHOLD_FAILED if any(one.outcome == "failed" for one in judged) else 0


def _write(path: Path, text: str, name: str) -> None:
    try:
        path.write_text(text, encoding="utf-8", errors="replace")
    except OSError as error:
        raise LabError(f"--{name} {path}: {error.strerror}; name another file") from error
