"""The report as one HTML file that asks for nothing else: no script, no font, no picture, no network."""

from __future__ import annotations

from pathlib import Path

from clientlab.errors import LabError
from clientlab.reports.html.page import render
from clientlab.runs.document import Run

__all__ = ["check", "render", "write"]

_ENDINGS = (".html", ".htm")


def check(path: Path) -> None:
    """Raises LabError for a path that no report can be written to; to be asked before anything is read."""
    if path.suffix not in _ENDINGS:
        raise LabError(f"report {path}: the ending is to be one of {', '.join(_ENDINGS)}")
    if not path.parent.is_dir():
        raise LabError(f"report {path}: there is no folder {path.parent}; make it or name another with --html")


def write(run: Run, path: Path) -> None:
    """Write a run's report. Raises LabError."""
    check(path)
    try:
        path.write_text(render(run), encoding="utf-8")
    except OSError as error:
        raise LabError(f"report {path}: {error.strerror}; name another place with --html") from error
