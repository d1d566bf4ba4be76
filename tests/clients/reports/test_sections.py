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
    text = re.sub(
        r"\\(.)", r"\1", html.unescape(as_markdown.render(run)).replace(r"\|", "\0")
    )
    return spaced(
        re.sub(r"^[>|-] |\*\*|\|", " ", text, flags=re.MULTILINE).replace("\0", "|")
    )


def said(section: Section) -> Iterator[str]:
    """All texts of a section that each format has, in their order."""
    for part in section.parts:
        match part:
            case Lines():
                yield from part.items
            case Tables():
                for table in part.items:
                    yield from (
                        table.title,
                        " ".join(table.headings),
                        *(" ".join(row) for row in table.rows),
                    )
    yield from section.sentences


def missing(text: str, texts: Iterator[str]) -> list[str]:
    return [one for one in map(spaced, texts) if one not in text]


def test_every_format_has_the_same_sections():
    """Terminal, Markdown and page have every sentence, row and note of the list.

    Tables are in the list's order.
    """
    run = a_bundled_run("keepalive")
    report = Report(run)
    page = Page(as_html.render(run))
    texts = (spaced(shown(run, 1000)), markdown(run))
    ids = [section["id"] for section in page.all("section")]
    assert ids == [one for make in contents.SECTIONS if (one := make(report).id) in ids]
    in_order = [0, 0]
    for section in text_sections(report, whole=True):
        for text in texts:
            assert missing(text, said(section)) == []
        if section.id not in BRIEF:
            assert missing(page.section(section.id), said(section)) == []
        titles = [
            table.title
            for part in section.parts
            if isinstance(part, Tables)
            for table in part.items
        ]
        for title in map(spaced, titles):
            in_order = [
                text.find(title, place)
                for text, place in zip(texts, in_order, strict=True)
            ]
            assert min(in_order) >= 0, title


def test_paths_of_a_replay_have_sums_and_medians_of_the_rounds():
    """The most frequent path is first. Only the whole report has them."""
    seldom = PathFigures(path="/seldom", requests=300, errors=0)
    rounds = [
        [seldom, PathFigures(path="/often", requests=700, errors=1, p50=k / 1000)]
        for k in (1, 2, 3)
    ]
    report = Report(
        a_run(
            *(a_trial(number=number, paths=of) for number, of in enumerate(rounds, 1))
        )
    )
    (section,) = [one for one in text_sections(report, whole=True) if one.id == "paths"]
    ((path, _, *figures), (_, _, *others)) = section.parts[0].items[0].rows
    assert path == "/often"
    assert figures == ["2,100", "3", units.time(0.002), units.UNKNOWN]
    assert others == ["900", "0", units.UNKNOWN, units.UNKNOWN]
    assert "paths" not in [one.id for one in text_sections(report, whole=False)]


def test_a_section_without_content_is_left_out():
    assert [
        section.id for section in text_sections(Report(a_run(a_trial())), whole=True)
    ] == [
        "answer",
        "table",
        "surroundings",
        "again",
    ]
