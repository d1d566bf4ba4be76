"""A generated file, or a generated block between two marker lines of a file that people edit."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass


class BlockMissing(Exception):
    """The marker lines of a generated block are not in the file."""


@dataclass(frozen=True)
class Generated:
    """`text` returns the content; `path` is relative to the repository's root, with slashes.

    Without a marker the content is the whole file. With one it is the lines between ``<!-- generated: MARKER -->``
    and ``<!-- /generated -->`` (Markdown, HTML), or ``# generated: MARKER`` and ``# /generated`` (YAML, TOML, Python).
    The content keeps its own indentation.
    """

    path: str
    text: Callable[[], str]
    marker: str = ""

    def applied(self, before: str) -> str:
        """The file's text with the content in its place. Raises BlockMissing."""
        content = self.text().rstrip("\n") + "\n"
        if not self.marker:
            return content
        begin = rf"^[ \t]*(?:<!-- generated: {re.escape(self.marker)} -->|# generated: {re.escape(self.marker)})\n"
        end = r"^[ \t]*(?:<!-- /generated -->|# /generated)$"
        found = re.search(rf"({begin})(.*?)({end})", before, re.DOTALL | re.MULTILINE)
        if found is None:
            raise BlockMissing(
                f"{self.path}: no block {self.marker!r}; "
                f"write the lines <!-- generated: {self.marker} --> and <!-- /generated --> where it belongs"
            )
        # Markdown needs an empty line between a comment and a table.
        space = "\n" if found[1].lstrip().startswith("<!--") else ""
        return before[: found.end(1)] + space + content + space + before[found.start(3) :]
