"""Parts of a Markdown document, with every text that a user gave escaped."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence

_SPECIAL = re.compile(r"([\\`*_\[\]|~#])")


def escaped(text: str) -> str:
    """Text that Markdown shows as it is, on one line."""
    return _SPECIAL.sub(r"\\\1", html.escape(" ".join(text.split()), quote=False))


def code(text: str) -> str:
    """Text as code on one line: fenced by more backticks than it holds in a row."""
    line = " ".join(text.split())
    fence = "`" * (1 + max(map(len, re.findall("`+", line)), default=0))
    return f"{fence} {line} {fence}" if "`" in line else f"{fence}{line}{fence}"


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], *, left: int = 1) -> str:
    """A table; all cells but those of the first `left` columns stand to the right."""
    rule = ["---" if place < left else "---:" for place in range(len(heads))]
    lines = [list(map(escaped, heads)), rule, *(list(map(escaped, row)) for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
