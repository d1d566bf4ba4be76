"""Parts of a Markdown document. Texts of users are escaped."""

from __future__ import annotations

import html
import re
from collections.abc import Collection, Iterable, Sequence

_SPECIAL = re.compile(r"([\\`*_\[\]|~#])")

_MENTION = re.compile(r"(?<![A-Za-z0-9_])@(?=[A-Za-z0-9])")
"""What GitHub takes for the name of a user or of a team, who would get a message. ``aiohttp@workers`` is none."""


def escaped(text: str) -> str:
    """The text on one line, without any character that Markdown would interpret, and without a mention of anybody.

    GitHub looks for mentions behind its Markdown, where a backslash is gone: a space of no width parts ``@`` and name.
    """
    line = _SPECIAL.sub(r"\\\1", html.escape(" ".join(text.split()), quote=False))
    return _MENTION.sub("@&#8203;", line)


def code(text: str) -> str:
    """The text as code on one line, between more backticks than the text has in a row."""
    line = " ".join(text.split())
    fence = "`" * (1 + max(map(len, re.findall("`+", line)), default=0))
    return f"{fence} {line} {fence}" if "`" in line else f"{fence}{line}{fence}"


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], *, left: int = 1, texts: Collection[int] = ()) -> str:
    """A table. The first `left` columns and those of `texts` are aligned to the left, all others to the right."""
    rule = ["---" if index < left or index in texts else "---:" for index in range(len(heads))]
    lines = [list(map(escaped, heads)), rule, *(list(map(escaped, row)) for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
