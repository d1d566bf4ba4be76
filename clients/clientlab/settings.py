"""Settings behind a name, as in ``NAME?pool=10&loop=uvloop``: one syntax for strategies and upstreams."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl

Setting = bool | int | float | str | None

_TYPES = {"bool": "true or false", "int": "a whole number", "float": "a number", "str": "a word", "None": "none"}
_WORDS = {"true": True, "false": False, "none": None}


def split(name: str) -> tuple[str, dict[str, Setting]]:
    """Split a name from its settings, each converted to the type that its text suggests."""
    plain, _, query = name.partition("?")
    return plain, {key: _value(text) for key, text in parse_qsl(query, keep_blank_values=True)}


def fits(value: Any, kind: str) -> bool:
    """Whether a setting has a type, given as an annotation: ``int``, ``float | None``."""
    return any(_is(value, one) for one in kind.split(" | "))


def named(kind: str) -> str:
    """A type in words for an error message, by what a user writes."""
    return " or ".join(_TYPES.get(one, one) for one in kind.split(" | "))


def written(value: Setting) -> str:
    """The text of a setting."""
    return next((word for word, meant in _WORDS.items() if meant is value), str(value))


def _value(text: str) -> Setting:
    """The value of a text: true, false, none, an integer, a number, or the text itself."""
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
