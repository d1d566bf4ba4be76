"""Settings in a name, as in ``NAME?pool=10&loop=uvloop``: the syntax for strategies, and the upstreams that use it."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

from clientlab.errors import LabError
from clientlab.text import suggest_nearest

Setting = bool | int | float | str | None

UPSTREAMS = ("flask", "aiohttp")
MOST_OF_SERVER = {"workers": 256, "threads": 4096}  # the same limits as in servers/mockupstream/settings.py
_TYPE_NAMES = {"bool": "true or false", "int": "a whole number", "float": "a number", "str": "a word", "None": "none"}
_WORDS = {"true": True, "false": False, "none": None}
_UPSTREAM_TYPES = {"server": "str", "workers": "int", "threads": "int", "worker_class": "str"}
_UPSTREAM_SETTINGS = {"flask": tuple(_UPSTREAM_TYPES), "aiohttp": ("server", "workers")}
_UPSTREAM_CHOICES = {"server": ("gunicorn", "development"), "worker_class": ("gthread", "sync")}


def split(name: str) -> tuple[str, dict[str, Setting]]:
    """Split a name from its settings, which get the types that their texts suggest. Raise LabError."""
    plain, _, query = name.partition("?")
    pairs = parse_qsl(query, keep_blank_values=True)
    if len(dict(pairs)) < len(pairs):
        raise LabError(f"{name!r} has a setting twice; write each once")
    return plain, {key: _parse_setting(text) for key, text in pairs}


def _parse_setting(text: str) -> Setting:
    for parse in (_WORDS.__getitem__, int, float):
        with contextlib.suppress(KeyError, ValueError):
            return parse(text)
    return text


def write_setting(value: Setting) -> str:
    """Return a setting as users write it."""
    return next((word for word, meant in _WORDS.items() if meant is value), str(value))


def fits(value: Any, kind: str) -> bool:
    """Return whether a setting has a type, given as an annotation: ``int``, ``float | None``."""
    name = type(value).__name__.replace("NoneType", "None")
    return name in kind.split(" | ") or (name == "int" and "float" in kind)


def describe_type(kind: str) -> str:
    """Return a type in words for an error message."""
    return " or ".join(_TYPE_NAMES.get(one, one) for one in kind.split(" | "))


@dataclass(frozen=True)
class Upstream:
    """One of the lab's own servers, for example ``flask?workers=4``. With None, the lab chooses `workers` or `threads`.

    A `special` upstream has settings and runs only while a trial needs it.
    """

    name: str
    framework: str
    special: bool = False
    server: str = "gunicorn"
    workers: int | None = None
    threads: int | None = None
    worker_class: str = "gthread"  # for Flask; sync closes each connection

    @property
    def development(self) -> bool:
        return self.server == "development"


def find_upstream(name: str) -> Upstream:
    """Return the upstream of that name. Raise LabError that lists the valid names or settings."""
    framework, given = split(name)
    if framework not in UPSTREAMS:
        near = suggest_nearest(framework, UPSTREAMS)
        raise LabError(f"upstream {name!r} is unknown{near}; there are {', '.join(UPSTREAMS)}")
    known = _UPSTREAM_SETTINGS[framework]
    if not given and name != framework:
        raise LabError(f"upstream {name!r} has no settings after its '?'; write one of {', '.join(known)}")
    for key, value in given.items():
        written = f"upstream {name!r}: setting {key}={write_setting(value)}"
        if key not in known:
            raise LabError(f"upstream {name!r} has no setting {key!r}; it has {', '.join(known)}")
        if not fits(value, _UPSTREAM_TYPES[key]):
            raise LabError(f"{written} must be {describe_type(_UPSTREAM_TYPES[key])}")
        if key in _UPSTREAM_CHOICES and value not in _UPSTREAM_CHOICES[key]:
            raise LabError(f"{written}; write {' or '.join(_UPSTREAM_CHOICES[key])}")
        if isinstance(value, int) and not 1 <= value <= MOST_OF_SERVER[key]:
            raise LabError(f"{written}; write 1 to {MOST_OF_SERVER[key]}")
    found = Upstream(name, framework, special=bool(given), **given)  # type: ignore[arg-type] # they have been checked
    if found.development and len(given) > 1:
        raise LabError(f"upstream {name!r}: only gunicorn supports other settings, not the development server")
    if found.worker_class == "sync" and found.threads is not None:
        raise LabError(f"upstream {name!r}: a worker of class sync has one thread; leave threads out")
    return found
