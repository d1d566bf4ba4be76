"""A run as Markdown, for a README, an issue or a comment: its sections as paragraphs, lists and tables."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence

from clientlab import units
from clientlab.judging.thresholds import ThresholdResult
from clientlab.reports.claims_section import claims_table
from clientlab.reports.contents import text_sections
from clientlab.reports.data_table import DataTable
from clientlab.reports.sections import Alerts, Command, Lines, Listing, Part, Report, Section, Tables, Verdicts
from clientlab.results.document import Run

_SPECIAL = re.compile(r"([\\`*_\[\]|~#])")


def render(run: Run, judged: Sequence[ThresholdResult] = (), *, whole: bool = True) -> str:
    """Return the whole report, or its short form."""
    sections = [section for section in text_sections(Report(run, judged)) if whole or section.brief]
    return document(sections, whole=whole)


def document(sections: Sequence[Section], *, whole: bool = True) -> str:
    """Return sections below the heading of the first."""
    blocks = [f"**{escaped(sections[0].heading)}**\n"]
    for section in sections:
        blocks += ["".join(f"**{escaped(line)}**  \n" for line in section.sentences)] if section.sentences else []
        blocks += [block for part in section.parts for block in _part(part, whole=whole)]
        blocks += [f"{escaped(note)}\n" for note in section.notes] if whole else []
    return "\n".join(blocks)


def _part(part: Part, *, whole: bool) -> Iterator[str]:
    match part:
        case Alerts() if whole:
            reasons = (reason for _, reasons in part.items for reason in reasons)
            yield "".join(f"> **{escaped(text)}** - {escaped(advice)}  \n" for text, advice in reasons)
        case Alerts(brief=brief) if brief:
            yield f"> {escaped(brief)}\n"
        case Listing():
            yield f"{escaped(part.title)}:\n\n" + "".join(f"- {escaped(line)}\n" for line in part.items)
        case Lines() if whole or part.brief:
            yield from (f"{escaped(line)}\n" for line in part.items)
        case Tables():
            for table in part.items:
                yield f"{escaped(table.title)}\n\n{_table(table if whole else _shortened(table))}"
        case Verdicts():
            table = claims_table(part.items)
            yield _table(table if whole else table.short)
        case Command():
            yield from (f"Command:\n\n    {' '.join(line.split())}\n" for line in part.items)


def _shortened(table: DataTable) -> DataTable:
    """Return the most important columns, without those that no row has a value in."""
    columns = range(table.keys, len(table.headings)) if table.brief is None else table.brief
    return table.of_columns([place for place in columns if any(row[place] != units.UNKNOWN for row in table.rows)])


def _table(table: DataTable) -> str:
    rule = ["---" if table.is_text(column) else "---:" for column in range(len(table.headings))]
    lines = [list(map(escaped, table.headings)), rule, *(list(map(escaped, row)) for row in table.rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def escaped(text: str) -> str:
    """Return the text on one line, with a backslash before characters that Markdown would interpret."""
    return _SPECIAL.sub(r"\\\1", html.escape(" ".join(text.split()), quote=False))
