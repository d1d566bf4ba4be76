"""A run as Markdown, for a README, an issue or a comment: its sections as paragraphs,
lists and tables.
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
        blocks += (
            ["".join(f"**{escaped(line)}**  \n" for line in section.sentences)]
            if section.sentences
            else []
        )
        blocks += [block for part in section.parts for block in _part(part)]
    return "\n".join(blocks)


def _part(part: Part) -> Iterator[str]:
    match part:
        case Lines(title=title) if title:
            yield f"{escaped(title)}:\n\n" + "".join(
                f"- {escaped(line)}\n" for line in part.items
            )
        case Lines(alert=True):
            yield "  \n".join(f"> {escaped(line)}" for line in part.items) + "\n"
        case Lines():
            yield from (f"{escaped(line)}\n" for line in part.items)
        case Tables():
            for table in part.items:
                yield (f"{escaped(table.title)}\n\n" if table.title else "") + _table(
                    table
                )
        case Command():
            yield from (
                f"Command:\n\n    {' '.join(line.split())}\n" for line in part.items
            )


def _table(table: DataTable) -> str:
    """Return a table. The short form leaves out columns that no row has a value in."""
    if table.brief is not None:
        known = [
            place
            for place in table.brief
            if any(row[place] != units.UNKNOWN for row in table.rows)
        ]
        table = table.of_columns(known)
    rule = [
        "---" if table.is_text(column) else "---:"
        for column in range(len(table.headings))
    ]
    lines = [
        list(map(escaped, table.headings)),
        rule,
        *(list(map(escaped, row)) for row in table.rows),
    ]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def escaped(text: str) -> str:
    """Return the text on one line, with a backslash before characters that Markdown
    would interpret.
    """
    return _SPECIAL.sub(r"\\\1", html.escape(" ".join(text.split()), quote=False))
