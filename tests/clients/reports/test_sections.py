"""One list of sections: every format says what the list says."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

from clientlab import units
from clientlab.reports import as_html, as_markdown, contents
from clientlab.reports.contents import text_sections
from clientlab.reports.rows import Report
from clientlab.reports.sections import Lines, Section, Tables
from clientlab.results.document import Run
from clientlab.results.trial import PathFigures
from clients.documents import a_bundled_run, a_run, a_trial
from clients.reports.views import Page, shown

BRIEF = {"surroundings", "claims", "cautions", "course"}
"""Sections of which a page shows more than formats of text: all that is known of the
machine, cards, and charts.
"""


def spaced(text: str) -> str:
    return " ".join(text.split())


def markdown(run: Run) -> str:
    """The words of the Markdown document, without its marks."""
    text = html.unescape(as_markdown.render(run))
    text = text.replace(r"\|", "\0")
    text = re.sub(r"\\(.)", r"\1", text)
    text = re.sub(r"^[>|-] |\*\*|\|", " ", text, flags=re.MULTILINE)
    return spaced(text.replace("\0", "|"))


def said(section: Section) -> Iterator[str]:
    """All texts of a section that each format has, in their order."""
    for part in section.parts:
        match part:
            case Lines():
                yield from part.items
            case Tables():
                for table in part.items:
                    yield table.title
                    yield " ".join(table.headings)
                    for row in table.rows:
                        yield " ".join(row)
    yield from section.sentences


def titles(section: Section) -> Iterator[str]:
    """The titles of its tables."""
    for part in section.parts:
        if isinstance(part, Tables):
            for table in part.items:
                yield spaced(table.title)


def missing(text: str, section: Section) -> list[str]:
    words = [spaced(sentence) for sentence in said(section)]
    return [sentence for sentence in words if sentence not in text]


def test_every_format_has_the_same_sections():
    """Terminal, Markdown and page have every sentence, row and note of the list.

    Tables are in the list's order.
    """
    run = a_bundled_run("keepalive")
    report = Report(run)
    page = Page(as_html.render(run))
    texts = (spaced(shown(run, 1000)), markdown(run))
    ids = [section["id"] for section in page.all("section")]
    all_ids = [make(report).id for make in contents.SECTIONS]
    assert ids == [name for name in all_ids if name in ids]
    sections = list(text_sections(report, whole=True))
    for section in sections:
        if section.id not in BRIEF:
            assert missing(page.section(section.id), section) == []
    for text in texts:
        place = 0
        for section in sections:
            assert missing(text, section) == []
            for title in titles(section):
                place = text.find(title, place)
                assert place >= 0, title


def test_paths_of_a_replay_have_sums_and_medians_of_the_rounds():
    """The most frequent path is first. Only the whole report has them."""
    seldom = PathFigures(path="/seldom", requests=300, errors=0)
    trials = []
    for number in (1, 2, 3):
        often = PathFigures(path="/often", requests=700, errors=1, p50=number / 1000)
        trials.append(a_trial(number=number, paths=[seldom, often]))
    report = Report(a_run(*trials))
    sections = {section.id: section for section in text_sections(report, whole=True)}
    (table,) = sections["paths"].parts[0].items
    (path, _, *figures), (_, _, *others) = table.rows
    assert path == "/often"
    assert figures == ["2,100", "3", units.time(0.002), units.UNKNOWN]
    assert others == ["900", "0", units.UNKNOWN, units.UNKNOWN]
    for section in text_sections(report, whole=False):
        assert section.id != "paths"


def test_a_section_without_content_is_left_out():
    sections = text_sections(Report(a_run(a_trial())), whole=True)
    ids = [section.id for section in sections]
    assert ids == ["answer", "table", "surroundings", "again"]
