"""Settings behind a name, as in ``NAME?pool=10&loop=uvloop``: the same words for strategies and upstreams."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl

Setting = bool | int | float | str | None

_WORDS = {"true": True, "false": False, "none": None}


def split(name: str) -> tuple[str, dict[str, Setting]]:
    """The plain name, and the settings behind it as what they look like."""
    plain, _, query = name.partition("?")
    return plain, {key: _value(text) for key, text in parse_qsl(query, keep_blank_values=True)}


def fits(value: Any, kind: str) -> bool:
    """Whether a setting is of a type, as annotated: ``int``, ``float | None``."""
    return any(_is(value, one) for one in kind.split(" | "))


def named(kind: str) -> str:
    """A type as people read it."""
    return kind.replace("None", "none").replace(" | ", " or ")


def written(value: Setting) -> str:
    """A setting as it is written."""
    return next((word for word, meant in _WORDS.items() if meant is value), str(value))


def _value(text: str) -> Setting:
    """A setting as written: true, false, none, a whole number, a number, or a word."""
    if text in _WORDS:
        return _WORDS[text]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _is(value: Any, kind: str) -> bool:
    if kind == "float" and type(value) is int:
        return True
    return type(value).__name__ == kind.replace("None", "NoneType")
