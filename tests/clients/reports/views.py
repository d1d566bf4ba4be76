"""Reports as their tests read them: a table, the terminal's text, and an HTML page as
its elements and words.
"""

from __future__ import annotations

import io
from html.parser import HTMLParser

from rich.console import Console

from clientlab.reports import as_terminal
from clientlab.reports.answers import group_answers
from clientlab.reports.rows import figure_table, groups_of


def shown(run, width: int = 150, *, whole: bool = True) -> str:
    """Return the report as text, on a console of that width."""
    console = Console(record=True, width=width, file=io.StringIO(), color_system=None)
    console.print(as_terminal.render(run, whole=whole), highlight=False)
    return console.export_text()


def columns(run) -> dict[str, list[str]]:
    """Return heading → cells of the only table of a run."""
    (group,) = groups_of(run)
    table = figure_table(group)
    return {
        heading: [row[place] for row in table.rows]
        for place, heading in enumerate(table.headings)
    }


def answers(run) -> list[str]:
    """Return what the report answers about each group, with the details."""
    return [" ".join(answer) for answer in group_answers(groups_of(run))]


VOID = {"meta", "br", "input", "link", "img", "hr"}


class Page(HTMLParser):
    """Elements with their attributes and words, in the order of the page; tags must be
    closed in their order.
    """

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict]] = []
        self.words: dict[int, list[str]] = {}
        self._open: list[tuple[str, int]] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag, attrs):
        self.handle_data(" ")
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append((tag, len(self.elements) - 1))

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self._open.pop()[0] == tag
        self.handle_data(" ")

    def handle_data(self, data):
        for _, number in self._open:
            self.words.setdefault(number, []).append(data)

    def all(self, tag: str) -> list[dict]:
        """Return the attributes of all elements of that name."""
        return [attributes for name, attributes in self.elements if name == tag]

    def text(self, *tags: str) -> list[str]:
        """Return the words in each element of these names, spaces made one."""
        found = [
            number for number, (name, _) in enumerate(self.elements) if name in tags
        ]
        return [
            " ".join("".join(self.words.get(number, [])).split()) for number in found
        ]

    def section(self, name: str) -> str:
        """Return the words of a section."""
        place = next(
            n
            for n, (tag, attrs) in enumerate(self.elements)
            if tag == "section" and attrs["id"] == name
        )
        return " ".join("".join(self.words[place]).split())
