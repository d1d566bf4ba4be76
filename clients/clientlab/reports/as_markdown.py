"""A run as Markdown, for a README, an issue or a comment.

Sections are paragraphs, lists and tables.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence

from clientlab import units
from clientlab.judging.thresholds import ThresholdResult
from clientlab.reports.contents import text_sections
from clientlab.reports.rows import Report
from clientlab.reports.sections import Command, DataTable, Lines, Part, Section, Tables
from clientlab.results.document import Run

_SPECIAL = re.compile(r"([\\`*_\[\]|~#])")


def render(
    run: Run, judged: Sequence[ThresholdResult] = (), *, whole: bool = True
) -> str:
    """Return the whole report, or its short form."""
    return document(text_sections(Report(run, judged), whole=whole))


def document(sections: Sequence[Section]) -> str:
    """Return sections below the heading of the first."""
    blocks = [f"**{escaped(sections[0].heading)}**\n"]
    for section in sections:
        if section.sentences:
            lines = (f"**{escaped(sentence)}**  \n" for sentence in section.sentences)
            blocks.append("".join(lines))
        for part in section.parts:
            blocks += _part(part)
    return "\n".join(blocks)


def _part(part: Part) -> Iterator[str]:
    match part:
        case Lines(title=title) if title:
            lines = [f"- {escaped(line)}\n" for line in part.items]
            yield f"{escaped(title)}:\n\n{''.join(lines)}"
        case Lines(alert=True):
            quoted = [f"> {escaped(line)}" for line in part.items]
            yield "  \n".join(quoted) + "\n"
        case Lines():
            for line in part.items:
                yield f"{escaped(line)}\n"
        case Tables():
            for table in part.items:
                title = f"{escaped(table.title)}\n\n" if table.title else ""
                yield title + _table(table)
        case Command():
            for line in part.items:
                yield f"Command:\n\n    {' '.join(line.split())}\n"


def _table(table: DataTable) -> str:
    """Return a table. The short form leaves out columns that no row has a value in."""
    if table.brief is not None:
        known = [
            place
            for place in table.brief
            if any(row[place] != units.UNKNOWN for row in table.rows)
        ]
        table = table.of_columns(known)
    columns = range(len(table.headings))
    rule = ["---" if table.is_text(column) else "---:" for column in columns]
    heading = map(escaped, table.headings)
    rows = [heading, rule, *(map(escaped, row) for row in table.rows)]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def escaped(text: str) -> str:
    """Return the text on one line, with a backslash before characters of Markdown."""
    line = " ".join(text.split())
    return _SPECIAL.sub(r"\\\1", html.escape(line, quote=False))
