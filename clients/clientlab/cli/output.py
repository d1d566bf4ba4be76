"""Tables and reports on the terminal, and the files that `run`, `report` and `compare`
write.

Rich takes a while to import, so commands import this module when they run.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.markup import escape
from rich.segment import Segment
from rich.table import Table

from clientlab.cli.options import echo
from clientlab.errors import LabError
from clientlab.judging.comparison import Comparison
from clientlab.judging.thresholds import ThresholdResult, exit_code_of
from clientlab.reports import as_csv, as_junit, as_markdown, as_terminal, headline
from clientlab.reports.sections import Section
from clientlab.results.document import Run
from clientlab.results.store import read_run
from clientlab.text import make_printable

STDOUT = "-"
PIPE_COLUMNS = 150  # columns of a table if the output is not a terminal


class LabConsole(Console):
    """A console that escapes what a terminal would obey, and carries on if its reader
    goes away (`2>&1 | head -1`).
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(
            emoji=False, **settings
        )  # a strategy of a file may be called mine.py:ok:

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Render as Rich does, without the escape sequences in texts.

        Rich adds its own later.
        """
        for segment in super().render(renderable, options):
            yield (
                segment
                if segment.control
                else Segment(make_printable(segment.text), segment.style)
            )

    def on_broken_pipe(self) -> None:
        """Print nothing more.

        Rich calls this if a write finds no reader, and would end the process.
        """
        self.quiet = True
        # What is left in the buffer would fail once more when the interpreter ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), self.file.fileno())


def console(*, stderr: bool = False) -> Console:
    """Return the console for tables: as wide as the terminal, or
    `PIPE_COLUMNS` wide.
    """
    made = LabConsole(stderr=stderr)
    return made if made.is_terminal else LabConsole(stderr=stderr, width=PIPE_COLUMNS)


def print_table(rows: Sequence[Mapping[str, object]]) -> None:
    """Print a table of rows with equal keys, which are its headings."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    for heading in rows[0] if rows else ():
        table.add_column(heading, no_wrap=heading in {"name", "fault"}, overflow="fold")
    for row in rows:
        table.add_row(*(escape(str(value)) for value in row.values()))
    console().print(table)


def show(run: Run, *, whole: bool = False, stderr: bool) -> None:
    """Print the report of a run, in its short form or in full."""
    console(stderr=stderr).print(as_terminal.render(run, whole=whole), highlight=False)


def show_thresholds(judged: Sequence[ThresholdResult], *, stderr: bool) -> int:
    """Print the thresholds that failed or are uncertain. Return the exit code."""
    for line in headline.threshold_lines(judged):
        echo(line, err=stderr)
    return exit_code_of(judged)


def write_files(
    run: Run,
    judged: Sequence[ThresholdResult],
    targets: Mapping[str, Any],
    *,
    whole: bool = False,
    stderr: bool,
) -> None:
    """Write the files whose paths are given, and print the paths.

    `targets`: option → path.

    Raise the LabError or OSError of the first file that cannot be written, after the
    others are.
    """
    errors: list[LabError | OSError] = []
    for option, target in targets.items():
        if target is None:
            continue
        try:
            _write_file(run, judged, option, target, whole=whole, stderr=stderr)
        except (LabError, OSError) as error:
            errors.append(error)
    if errors:
        raise errors[0]


def _write_file(
    run: Run,
    judged: Sequence[ThresholdResult],
    option: str,
    target: Any,
    *,
    whole: bool,
    stderr: bool,
) -> None:
    if option == "chart":
        # matplotlib takes half a second to import.
        from clientlab.reports import drawing

        drawing.write(run, target)
        echo(f"chart: {target}", err=stderr)
    elif option == "html":
        from clientlab.reports import as_html

        page = as_html.render(run, judged, Path(target).parent)
        write_text(target, page, option, stderr=stderr)
    elif option == "csv":
        write_text(target, as_csv.render(run), option, stderr=stderr)
    elif option == "markdown":
        write_text(
            target, as_markdown.render(run, judged, whole=whole), option, stderr=stderr
        )
    elif option == "junit":
        write_text(target, as_junit.render(run, judged), option, stderr=stderr)


def write_comparison(
    found: Comparison,
    judged: Sequence[ThresholdResult],
    sections: Sequence[Section],
    targets: Mapping[str, Any],
    *,
    stderr: bool,
) -> None:
    """Write the files of a comparison whose paths are given, and print the paths.

    `targets`: option → path, or None. Raise LabError or OSError.
    """

    def render_html() -> str:
        from clientlab.reports import as_html

        return as_html.render_comparison(found.base, sections)

    written: dict[str, Callable[[], str]] = {
        "html": render_html,
        "markdown": lambda: as_markdown.document(sections),
        "junit": lambda: as_junit.render_comparison(found, judged),
    }
    for option, render in written.items():
        target = targets[option]
        if target is not None:
            write_text(target, render(), option, stderr=stderr)


def write_text(target: Path | str, text: str, name: str, *, stderr: bool) -> None:
    """Write the file of the option ``--name`` and print its path, or print the text.

    Raise LabError or OSError.

    A run file is refused, because its run would be lost.
    """
    if target == STDOUT:
        echo(text, nl=False)
        return
    path = Path(target)
    if path.is_file():
        try:
            read_run(path)
        except LabError:
            pass  # any other file may be replaced
        else:
            raise LabError(
                f"--{name} {path}: this is a run file, and would be lost; name another"
                " file"
            )
    path.write_text(make_printable(text), encoding="utf-8")
    echo(f"{name}: {path}", err=stderr)
