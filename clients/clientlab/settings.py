"""Settings in a name, as in ``NAME?pool=10&loop=uvloop``, and those of upstreams.

Names of strategies have the same syntax.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

from clientlab.errors import LabError
from clientlab.text import suggest_nearest

Setting = bool | int | float | str | None

UPSTREAMS = ("flask", "aiohttp")
MOST_WORKERS = 256
_TYPE_NAMES = {
    "bool": "true or false",
    "int": "a whole number",
    "float": "a number",
    "str": "a word",
    "None": "none",
}
_WORDS = {"true": True, "false": False, "none": None}
_UNSUPPORTING = {
    "development": "the development server",
    "sync": "a worker of class sync",
}


class _SettingSpec(NamedTuple):
    """A setting of upstreams: its type, its values, and what has it.

    `without`: servers and worker classes.
    """

    kind: str
    allowed: range | tuple[str | bool, ...]
    frameworks: tuple[str, ...] = UPSTREAMS
    without: tuple[str, ...] = ("development",)


# servers/mockupstream/gunicorn_config.py has the same limits.
_SECONDS = range(1, 86_401)
_SETTINGS = {
    "server": _SettingSpec("str", ("gunicorn", "development"), without=()),
    "workers": _SettingSpec("int", range(1, MOST_WORKERS + 1)),
    "threads": _SettingSpec(
        "int", range(1, 4097), ("flask",), without=("development", "sync")
    ),
    "worker_class": _SettingSpec("str", ("gthread", "sync"), ("flask",)),
    "keep_alive": _SettingSpec("int", _SECONDS, without=("development", "sync")),
    "max_requests": _SettingSpec("int", range(1, 1_000_001)),
    "any_path": _SettingSpec("bool", (True, False), without=()),
    "proxy_idle": _SettingSpec("int", _SECONDS, without=()),
    "proxy_keep_alive": _SettingSpec("int", _SECONDS, without=()),
}


def split(name: str) -> tuple[str, dict[str, Setting]]:
    """Split a name from its settings, which get the types that their texts suggest.

    Raise LabError.
    """
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
    for word, meaning in _WORDS.items():
        if meaning is value:
            return word
    return str(value)


def fits(value: Any, kind: str) -> bool:
    """Return whether a setting has a type, an annotation such as ``float | None``."""
    name = type(value).__name__.replace("NoneType", "None")
    return name in kind.split(" | ") or (name == "int" and "float" in kind)


def describe_type(kind: str) -> str:
    """Return a type in words for an error message."""
    return " or ".join(_TYPE_NAMES.get(name, name) for name in kind.split(" | "))


@dataclass(frozen=True)
class Upstream:
    """One of the lab's own servers, for example ``flask?workers=4``.

    With None, the lab or the server chooses a value.

    A `special` upstream has settings and runs only while a trial needs it. The proxy's
    times are in seconds, and their defaults are those of proxy/Caddyfile.
    """

    name: str
    framework: str
    special: bool = False
    server: str = "gunicorn"
    workers: int | None = None
    threads: int | None = None
    worker_class: str = "gthread"  # for Flask; sync closes each connection
    # Seconds for which the server keeps an idle connection.
    keep_alive: int | None = None
    max_requests: int | None = None  # gunicorn replaces a worker after this many
    any_path: bool = False  # every path is answered like /
    proxy_idle: int = 300  # how long the proxy keeps idle connections of clients
    proxy_keep_alive: int = 60  # how long it keeps idle connections to the upstream

    @property
    def development(self) -> bool:
        return self.server == "development"

    @property
    def proxy_times(self) -> dict[str, str]:
        """The variables of proxy/Caddyfile for its times of idle connections."""
        return {
            "PROXY_IDLE": f"{self.proxy_idle}s",
            "PROXY_KEEP_ALIVE": f"{self.proxy_keep_alive}s",
        }

    @property
    def changes_proxy(self) -> bool:
        return self.proxy_times != Upstream("", "").proxy_times


def find_upstream(name: str) -> Upstream:
    """Return the upstream of that name.

    Raise LabError that lists the valid names or settings.
    """
    framework, given = split(name)
    if framework not in UPSTREAMS:
        near = suggest_nearest(framework, UPSTREAMS)
        raise LabError(
            f"upstream {name!r} is unknown{near}; there are {', '.join(UPSTREAMS)}"
        )
    known = {
        key: spec for key, spec in _SETTINGS.items() if framework in spec.frameworks
    }
    choices = ", ".join(known)
    if not given and name != framework:
        raise LabError(
            f"upstream {name!r} has no settings after its '?'; write one of {choices}"
        )
    for key, value in given.items():
        if key not in known:
            raise LabError(
                f"upstream {name!r} has no setting {key!r}; it has {choices}"
            )
        _check_setting(name, key, value)
    # The settings have been checked.
    upstream = Upstream(name, framework, bool(given), **given)  # type: ignore[arg-type]
    for key in given:
        lacking = {upstream.server, upstream.worker_class} & {*known[key].without}
        if lacking:
            raise LabError(
                f"upstream {name!r}: {_UNSUPPORTING[min(lacking)]} does not support"
                f" {key}; leave it out"
            )
    return upstream


def _check_setting(name: str, key: str, value: Setting) -> None:
    spec = _SETTINGS[key]
    written = f"upstream {name!r}: setting {key}={write_setting(value)}"
    if not fits(value, spec.kind):
        raise LabError(f"{written} must be {describe_type(spec.kind)}")
    if value not in spec.allowed:
        if isinstance(spec.allowed, range):
            choices = f"1 to {spec.allowed[-1]}"
        else:
            choices = " or ".join(map(write_setting, spec.allowed))
        raise LabError(f"{written}; write {choices}")
