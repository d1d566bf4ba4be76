"""The report as one HTML file without scripts, fonts, images or requests to a network."""

from __future__ import annotations

from pathlib import Path

from clientlab.reports.files import PAGE
from clientlab.reports.html.page import render
from clientlab.results.document import Run

__all__ = ["render", "write"]


def write(run: Run, path: Path) -> None:
    """Write a run's report. Raises LabError."""
    with PAGE.writing(path):
        path.write_text(render(run), encoding="utf-8")
