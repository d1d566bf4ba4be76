"""The report as one HTML file without scripts, fonts, images or requests to a network."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from clientlab.judging.thresholds import ThresholdResult
from clientlab.reports.files import PAGE
from clientlab.reports.html.page import render
from clientlab.results.document import Run

__all__ = ["render", "write"]


def write(run: Run, path: Path, judged: Sequence[ThresholdResult] = ()) -> None:
    """Write a run's report, with the limits that it was judged by. Raises LabError."""
    with PAGE.writing(path):
        path.write_text(render(run, judged), encoding="utf-8")
