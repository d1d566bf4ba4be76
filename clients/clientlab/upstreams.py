"""The names of the lab's own upstreams: a framework and the settings of its server (``flask?workers=4``)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from clientlab import settings
from clientlab.errors import LabError
from clientlab.nearest import nearest

UPSTREAMS = ("flask", "aiohttp")

_LIMIT = {"rate": "int | float", "burst": "int"}
_KINDS = {
    "flask": {
        "server": "str",
        "workers": "int",
        "threads": "int",
        "worker_class": "str",
        "keep_alive": "int",
        **_LIMIT,
    },
    "aiohttp": {"server": "str", "workers": "int", "keep_alive": "int", **_LIMIT},
}
_LEAST_RATE = 0.01
_CHOICES = {"server": ("gunicorn", "development"), "worker_class": ("gthread", "sync")}
MOST = {
    "workers": 256,
    "threads": 4096,
    "keep_alive": 86_400,
    "rate": 1_000_000,
    "burst": 1_000_000,
}  # as servers/mockupstream/settings.py has them


@dataclass(frozen=True)
class Upstream:
    """How one framework is served. `workers` and `threads` are gunicorn's; with None, the lab chooses.

    `keep_alive`: seconds after which it closes an idle connection; None: the lab's own, which are many. `rate`:
    requests per second of all workers together, others get 429; None: no limit. `burst`: those that may come at once.

    A `special` upstream has settings and runs only while a trial needs it.
    """

    name: str
    framework: str
    special: bool = False
    server: str = "gunicorn"
    workers: int | None = None
    threads: int | None = None
    keep_alive: int | None = None
    rate: float | None = None
    burst: int | None = None
    worker_class: str = "gthread"  # for Flask; sync closes each connection

    @property
    def development(self) -> bool:
        return self.server == "development"


def find(name: str) -> Upstream:
    """The upstream of that name. Raises LabError that names the valid ones."""
    framework, given = settings.split(name)
    if framework not in UPSTREAMS:
        raise LabError(f"upstream {name!r} is unknown{nearest(framework, UPSTREAMS)}; there are {', '.join(UPSTREAMS)}")
    if not given and name != framework:
        known = ", ".join(_KINDS[framework])
        raise LabError(f"upstream {name!r} has no settings behind its '?'; leave it out, or write one of {known}")
    for key, value in given.items():
        _check(name, _KINDS[framework], key, value)
    arguments: dict[str, Any] = dict(given)
    found = Upstream(name, framework, special=bool(given), **arguments)
    gunicorns = [key for key in given if key not in {"server", *_LIMIT}]
    if found.burst is not None and found.rate is None:
        raise LabError(f"upstream {name!r}: burst goes with rate; write rate=100&burst={found.burst}, or leave it out")
    if found.development and gunicorns:
        raise LabError(f"upstream {name!r}: {gunicorns[0]} is of gunicorn, not of a development server; leave it out")
    if found.worker_class == "sync" and found.threads is not None:
        raise LabError(f"upstream {name!r}: a worker of class sync has one thread; leave threads out")
    if found.worker_class == "sync" and found.keep_alive is not None:
        raise LabError(f"upstream {name!r}: a worker of class sync keeps no connection; leave keep_alive out")
    return found


def special(names: Iterable[str]) -> list[str]:
    """The names that have settings."""
    return [name for name in names if find(name).special]


def _check(name: str, kinds: dict[str, str], key: str, value: settings.Setting) -> None:
    if key not in kinds:
        raise LabError(f"upstream {name!r} has no setting {key!r}; it has {', '.join(kinds)}")
    written = f"upstream {name!r}: setting {key}={settings.written(value)}"
    if not settings.fits(value, kinds[key]):
        raise LabError(f"{written} is to be {settings.named(kinds[key])}")
    if key in _CHOICES and value not in _CHOICES[key]:
        raise LabError(f"{written}; write {' or '.join(_CHOICES[key])}")
    least = _LEAST_RATE if key == "rate" else 1
    if isinstance(value, (int, float)) and not least <= value <= MOST[key]:
        raise LabError(f"{written}; write {least} to {MOST[key]}")
