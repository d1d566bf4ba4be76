"""The options of `clientlab report` that write files, and its limits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Format:
    """A format that `clientlab report` writes to a file or to standard output, with the option ``--NAME``.

    `bare`: without a file, the option means standard output.
    """

    name: str
    help: str
    render: Callable[[Run, Sequence[ThresholdResult]], str]
    bare: bool = False

    @property
    def option(self) -> Callable[[_Command], _Command]:
        """The option of the command line."""
        bare: dict[str, Any] = {"is_flag": False, "flag_value": _STDOUT} if self.bare else {}
        return click.option(f"--{self.name}", type=_FILE, help=self.help, **bare)


FORMATS = [
    Format("csv", "Write one row per trial to this file; - is standard output.", lambda run, _: as_csv.render(run)),
    Format(
        "markdown",
        "Write Markdown to this file, or to standard output if no file is given; place it after RUN.",
        as_markdown.render,
        bare=True,
    ),
    Format("junit", "Write arms, claims and limits as JUnit XML to this file.", as_junit.render),
]


def exports(command: _Command) -> _Command:
    """Add an option for each format, `texts` and `strict` to a command."""
    for option in reversed((
        *(one.option for one in FORMATS),
        click.option("--fail-on", "texts", multiple=True, metavar="LIMIT", help=FAIL_ON),
        click.option("--strict", is_flag=True, help=STRICT),
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
    chosen = {one: formats[one.name] for one in FORMATS if formats[one.name] is not None}
    if list(chosen.values()).count(_STDOUT) > 1:
        names = " and --".join(one.name for one in chosen)
        raise LabError(f"--{names}: only one of them can go to standard output; name a file")
    taken = _STDOUT in chosen.values()
    for one, target in chosen.items():
        if target == _STDOUT:
            click.echo(one.render(run, judged), nl=False)
        else:
            _write(Path(target), one.render(run, judged), one.name)
            click.echo(f"{one.name}: {printable(str(target))}", err=taken)
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
