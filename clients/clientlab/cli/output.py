"""What `run`, `report` and `compare` show and write."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from clientlab.cli.tables import console
from clientlab.cli.terminal import echo
from clientlab.errors import LabError
from clientlab.judging.thresholds import ThresholdResult
from clientlab.printable import printable
from clientlab.reports import as_junit, as_terminal, headline
from clientlab.results.document import Run
from clientlab.results.store import read_run

STDOUT = "-"
THRESHOLD_FAILED = 1


def show(run: Run, *, whole: bool = False, stderr: bool) -> None:
    """Print the report of a run: its short form, or the whole of it."""
    console(stderr=stderr).print(as_terminal.render(run, whole=whole), highlight=False)


def tell(judged: Sequence[ThresholdResult], *, stderr: bool) -> int:
    """Print the limits that failed or are not sure. Return the exit code."""
    for line in headline.lines(judged):
        echo(line, err=stderr)
    return THRESHOLD_FAILED if any(one.outcome == "failed" for one in judged) else 0


def write_files(
    run: Run,
    judged: Sequence[ThresholdResult],
    chart: Path | None,
    html: Path | None,
    junit: Path | None,
    *,
    stderr: bool,
) -> None:
    """Write the files whose paths are given, and print the paths. Raises LabError."""
    if chart is not None:
        from clientlab.reports.charts.drawing import write as draw  # matplotlib takes half a second to import

        draw(run, chart)
        echo(f"chart: {chart}", err=stderr)
    if html is not None:
        from clientlab.reports.as_html import write

        write(run, html, judged)
        echo(f"report: {html}", err=stderr)
    if junit is not None:
        write_text(junit, as_junit.render(run, judged), "junit", stderr=stderr)


def write_text(target: Path | str, text: str, name: str, *, stderr: bool) -> None:
    """Write the file of the option ``--name``, and print its path; or print the text. Raises LabError, OSError.

    A run file is refused: its run would be lost.
    """
    if target == STDOUT:
        echo(text, nl=False)
        return
    path = Path(target)
    if path.is_file() and _is_run(path):
        raise LabError(f"--{name} {path}: this is a run file, and would be lost; name another file")
    path.write_text(printable(text), encoding="utf-8")
    echo(f"{name}: {path}", err=stderr)


def _is_run(path: Path) -> bool:
    try:
        read_run(path)
    except LabError:
        return False
    return True
