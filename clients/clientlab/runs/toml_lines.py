"""Where a key stands in a TOML text: the standard library's parser gives no positions."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from typing import Any

Key = Sequence[str | int]
"""A path into a document: names of keys, numbers of a list's items."""


def line_of(text: str, key: Key) -> int | None:
    """The line, from 1, on which the statement begins that brings in `key`; None where no part of it is there.

    The parser itself finds it: the text grows line by line, and the statement is what lies between the last
    text without the key and the first with it. What is missing is looked for in the table that it belongs to.
    """
    lines = text.splitlines(keepends=True)
    for length in range(len(key), 0, -1):
        before = 0
        for end in range(1, len(lines) + 1):
            try:
                document = tomllib.loads("".join(lines[:end]))
            except tomllib.TOMLDecodeError:
                continue  # amid a value of several lines
            if _has(document, key[:length]):
                return before + 1
            before = end
    return None


def _has(document: Any, key: Key) -> bool:
    found = document
    for part in key:
        places = range(len(found)) if isinstance(found, list) else found if isinstance(found, dict) else ()
        if part not in places:
            return False
        found = found[part]
    return True
