"""An HTML page as its elements and words."""

from __future__ import annotations

from html.parser import HTMLParser

VOID = {"meta", "br", "input", "link", "img", "hr"}


class Page(HTMLParser):
    """Elements with their attributes and words, in the order of the page; tags must be closed in their order."""

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
        """The attributes of all elements of that name."""
        return [attributes for name, attributes in self.elements if name == tag]

    def text(self, *tags: str) -> list[str]:
        """The words in each element of these names, spaces made one."""
        found = [number for number, (name, _) in enumerate(self.elements) if name in tags]
        return [" ".join("".join(self.words.get(number, [])).split()) for number in found]

    def section(self, name: str) -> str:
        """The words of a section."""
        place = next(n for n, (tag, attrs) in enumerate(self.elements) if tag == "section" and attrs["id"] == name)
        return " ".join("".join(self.words[place]).split())
