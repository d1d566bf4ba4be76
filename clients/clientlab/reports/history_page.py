"""A history as one HTML file, with the frame of a run's page: no scripts, and nothing from a network."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from clientlab.judging.history import LineHistory
from clientlab.reports.as_html import TEMPLATES
from clientlab.reports.charts import histories
from clientlab.reports.charts.shapes import DataTable
from clientlab.reports.files import PAGE
from clientlab.reports.history import (
    HEADINGS,
    KEYS,
    TEXTS,
    History,
    answer,
    doubts,
    earlier,
    in_order,
    reasons,
    rows,
    titles,
)
from clientlab.reports.sections import Charts, Lines, Listing, Section, Tables


def write(history: History, path: Path) -> None:
    """Write the page. Raises LabError."""
    with PAGE.writing(path):
        path.write_text(render(history), encoding="utf-8")


def render(history: History) -> str:
    """The whole history as one HTML document."""
    title = f"History of {history.experiment}"
    sections = list(_sections(history, title))
    template = TEMPLATES.get_template("history.html.j2")
    return template.render(run=history.newest.line.runs[-1].run, sections=sections, title=title, groups=0, drawn=0)


def _sections(history: History, title: str) -> Iterator[Section[Any]]:
    """The answer with the pictures of what changed in the newest line, then a section for each line, newest first."""
    newest = history.newest
    notices = [Listing("Left out", history.left_out, alert=True)] if history.left_out else []
    parts = [*notices, Charts(partial(histories.changed, newest), noun="change")]
    yield Section("answer", title, parts, label="Answer", sentences=[answer(history), *earlier(newest)])
    numbered = list(enumerate(zip(titles(history), history.lines, strict=True), start=1))
    for number, (heading, found) in sorted(numbered, key=lambda one: one[1][1] is not newest):
        yield _line(f"line-{number}", heading, found, first=found is newest)


def _line(name: str, heading: str, found: LineHistory, *, first: bool) -> Section[Any]:
    table = DataTable(HEADINGS, list(rows(found, in_order(found))), title=heading, keys=KEYS, texts=TEXTS)
    changes = [] if first else [Charts(partial(histories.changed, found), noun="change")]
    parts = [
        Lines([line for line in (reasons(found), *([] if first else earlier(found))) if line]),
        *changes,
        Tables([table]),
        Charts(partial(histories.panels, found), noun="figure", notes=[histories.NOTE], look="timelines"),
    ]
    return Section(name, heading, parts, label=f"{found.runs} runs", notes=list(doubts(found)), folded=not first)
