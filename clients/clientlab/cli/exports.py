"""The options of `clientlab report` that write files, and its limits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from clientlab.errors import LabError
from clientlab.judging.run_thresholds import judge_run, threshold_of_run
from clientlab.judging.threshold_checks import check_arms, check_changes
from clientlab.judging.thresholds import Threshold, ThresholdResult
from clientlab.printable import printable
from clientlab.reports import as_csv, as_junit, as_markdown, thresholds
from clientlab.results.document import Run

_Command = TypeVar("_Command", bound=Callable[..., Any])
_FILE = click.Path(dir_okay=False, allow_dash=True)
_STDOUT = "-"
THRESHOLD_FAILED = 1
FAIL_ON = (
    "Exit with code 1 if an arm is surely beyond: 'p99 > 50ms', 'throughput < 1000', 'errors > 0'; of one arm: "
    "'ARM: p99 > 50ms'; between environments, compared with the first: 'throughput -5%', 'errors +0'. Repeatable."
)
STRICT = "Judge --fail-on by the median over rounds instead of its whole interval."


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
            help=FAIL_ON,
        ),
        click.option(
            "--strict", is_flag=True, help=STRICT
        ),
    )):  # fmt: skip
        command = option(command)
    return command


def limits_of(texts: Sequence[str], *, strict: bool) -> list[Threshold]:
    """The thresholds of ``--fail-on``. Raises LabError for one that is none, and for ``--strict`` without any."""
    limits = [threshold_of_run(text) for text in texts]
    if strict and not limits:
        raise LabError("--strict without --fail-on: it changes how --fail-on is judged; leave it out")
    return limits


def judged_by(run: Run, formats: dict[str, Any]) -> list[ThresholdResult]:
    """The thresholds of the options `texts` and `strict`, judged. Raises LabError."""
    limits = limits_of(formats["texts"], strict=formats["strict"])
    check_arms(limits, [arm.name for arm in run.experiment.arms])
    check_changes(limits, run.experiment)
    return judge_run(run, limits, strict=formats["strict"])


def export(run: Run, formats: dict[str, Any], judged: list[ThresholdResult]) -> tuple[bool, int]:
    """Write the chosen formats. Returns whether one went to standard output, and the exit code. Raises LabError."""
    renderers: dict[str, Callable[[], str]] = {
        "csv": lambda: as_csv.render(run),
        "markdown": lambda: as_markdown.render(run, judged),
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
            click.echo(f"{name}: {printable(str(target))}", err=taken)
    return taken, tell(judged, stderr=taken)


def tell(judged: list[ThresholdResult], *, stderr: bool) -> int:
    """Print the limits that failed or are not sure. The exit code."""
    for line in thresholds.lines(judged):
        click.echo(line, err=stderr)
    return THRESHOLD_FAILED if any(one.outcome == "failed" for one in judged) else 0


def _write(path: Path, text: str, name: str) -> None:
    try:
        path.write_text(text, encoding="utf-8", errors="replace")
    except OSError as error:
        raise LabError(f"--{name} {path}: {error.strerror}; name another file") from error
