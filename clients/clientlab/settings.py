"""Settings behind a name, as in ``NAME?pool=10&loop=uvloop``: one syntax for strategies and upstreams."""

from __future__ import annotations

import contextlib
from typing import Any
from urllib.parse import parse_qsl

from clientlab.errors import LabError

Setting = bool | int | float | str | None

_TYPES = {"bool": "true or false", "int": "a whole number", "float": "a number", "str": "a word", "None": "none"}
_WORDS = {"true": True, "false": False, "none": None}


def split(name: str) -> tuple[str, dict[str, Setting]]:
    """Split a name from its settings, each converted to the type that its text suggests. Raises LabError."""
    plain, _, query = name.partition("?")
    pairs = parse_qsl(query, keep_blank_values=True)
    if len(dict(pairs)) < len(pairs):
        raise LabError(f"{name!r} has a setting twice; write each once")
    return plain, {key: _value(text) for key, text in pairs}


def _value(text: str) -> Setting:
    if text in _WORDS:
        return _WORDS[text]
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(text)
    return text


def fits(value: Any, kind: str) -> bool:
    """Return whether a setting has a type, given as an annotation: ``int``, ``float | None``."""
    name = type(value).__name__.replace("NoneType", "None")
    return name in kind.split(" | ") or (name == "int" and "float" in kind)


def named(kind: str) -> str:
    """Return a type in words for an error message."""
    return " or ".join(_TYPES.get(one, one) for one in kind.split(" | "))


def written(value: Setting) -> str:
    """Return the text of a setting."""
    return next((word for word, meant in _WORDS.items() if meant is value), str(value))
