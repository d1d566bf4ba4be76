"""A comparison of runs as one HTML file, with the frame of a run's page: no scripts, and nothing from a network."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from clientlab.judging.comparison import Comparison
from clientlab.judging.thresholds import ThresholdResult
from clientlab.reports import comparison as texts
from clientlab.reports import headline
from clientlab.reports.as_html import TEMPLATES
from clientlab.reports.charts.shapes import DataTable
from clientlab.reports.files import PAGE
from clientlab.reports.sections import Lines, Listing, Section, Tables


def write(found: Comparison, path: Path, judged: Sequence[ThresholdResult]) -> None:
    """Write the page. Raises LabError."""
    with PAGE.writing(path):
        path.write_text(render(found, judged), encoding="utf-8")


def render(found: Comparison, judged: Sequence[ThresholdResult]) -> str:
    """The whole comparison as one HTML document."""
    names = " and ".join(one.run.run for one in found.others)
    title = f"{names} against {found.base.run}"
    sections = [_answer(found, judged, title), _changes(found)]
    template = TEMPLATES.get_template("comparison.html.j2")
    return template.render(run=found.base, sections=sections, title=title, groups=0, drawn=0)


def _answer(found: Comparison, judged: Sequence[ThresholdResult], title: str) -> Section[Any]:
    """Which runs, what to know before the figures are read, the thresholds, and how many figures changed."""
    failed = any(one.outcome == "failed" for one in judged)
    parts = [
        Lines(texts.headings(found)),
        *(Listing(name, lines, alert=True) for name, lines in texts.notices(found)),
        *([Listing("Thresholds", headline.lines(judged), alert=failed)] if judged else []),
    ]
    return Section("answer", title, parts, label="Answer", sentences=[texts.summary(found)])


def _changes(found: Comparison) -> Section[Any]:
    """A table for each arm."""
    heads = ["figure", "baseline", *texts.columns(found)]
    rows: dict[str, list[list[str]]] = {}
    for arm, row in _rows(found):
        rows.setdefault(arm, []).append(row)
    words = [2 + 3 * run + word for run in range(len(found.others)) for word in (1, 2)]
    tables = [DataTable(heads, of_arm, title=arm, texts=words) for arm, of_arm in rows.items()]
    return Section("changes", "Changes", [Tables(tables)], notes=list(texts.notes(found)))


def _rows(found: Comparison) -> Iterator[tuple[str, list[str]]]:
    for arm, figure, before, changes in texts.rows(found):
        yield arm, [figure, before, *(cell for change in changes for cell in texts.cells(change))]
