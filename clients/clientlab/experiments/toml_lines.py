"""The line of a key in a TOML text. The standard library's parser reports no positions."""

from __future__ import annotations

import tomllib
from typing import Any

from clientlab.errors import FieldKey

_MOST_LINES = 1_000
"""Each line is read with all lines before it. The longest experiment of the lab has 436."""


def line_of(text: str, key: FieldKey) -> int | None:
    """The line, from 1, of the statement that defines `key`; None where no part of the key exists, or in long texts.

    The parser itself finds it: the text grows line by line, and the statement lies between the last text without the
    key and the first text with it. For a missing key, the line is that of its table.
    """
    lines = text.splitlines(keepends=True)
    if len(lines) > _MOST_LINES:
        return None
    for length in range(len(key), 0, -1):
        before = 0
        for end in range(1, len(lines) + 1):
            try:
                document = tomllib.loads("".join(lines[:end]))
            except tomllib.TOMLDecodeError:
                continue  # within a value of several lines
            if has(document, key[:length]):
                return before + 1
            before = end
    return None


def has(document: Any, key: FieldKey) -> bool:
    """Whether a document has a value at that path."""
    found = document
    for part in key:
        places = range(len(found)) if isinstance(found, list) else found if isinstance(found, dict) else ()
        if part not in places:
            return False
        found = found[part]
    return True
