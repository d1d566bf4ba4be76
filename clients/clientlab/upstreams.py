"""Names of the lab's own upstreams: a framework and the settings of its server (``flask?workers=4``)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from clientlab import settings
from clientlab.errors import LabError
from clientlab.nearest import nearest

UPSTREAMS = ("flask", "aiohttp")
MOST = {"workers": 256, "threads": 4096}  # as servers/mockupstream/settings.py has them
_TYPES = {"server": "str", "workers": "int", "threads": "int", "worker_class": "str"}
_OF = {"flask": tuple(_TYPES), "aiohttp": ("server", "workers")}
_CHOICES = {"server": ("gunicorn", "development"), "worker_class": ("gthread", "sync")}


@dataclass(frozen=True)
class Upstream:
    """How one framework is served. `workers` and `threads` are gunicorn's; with None, the lab chooses.

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


def find(name: str) -> Upstream:
    """Return the upstream of that name. Raises LabError that names the valid ones."""
    framework, given = settings.split(name)
    if framework not in UPSTREAMS:
        raise LabError(f"upstream {name!r} is unknown{nearest(framework, UPSTREAMS)}; there are {', '.join(UPSTREAMS)}")
    known = _OF[framework]
    if not given and name != framework:
        raise LabError(f"upstream {name!r} has no settings after its '?'; write one of {', '.join(known)}")
    for key, value in given.items():
        written = f"upstream {name!r}: setting {key}={settings.written(value)}"
        if key not in known:
            raise LabError(f"upstream {name!r} has no setting {key!r}; it has {', '.join(known)}")
        if not settings.fits(value, _TYPES[key]):
            raise LabError(f"{written} must be {settings.named(_TYPES[key])}")
        if key in _CHOICES and value not in _CHOICES[key]:
            raise LabError(f"{written}; write {' or '.join(_CHOICES[key])}")
        if isinstance(value, int) and not 1 <= value <= MOST[key]:
            raise LabError(f"{written}; write 1 to {MOST[key]}")
    arguments: dict[str, Any] = dict(given)
    found = Upstream(name, framework, special=bool(given), **arguments)
    if found.development and len(given) > 1:
        raise LabError(f"upstream {name!r}: only gunicorn has other settings, not the development server")
    if found.worker_class == "sync" and found.threads is not None:
        raise LabError(f"upstream {name!r}: a worker of class sync has one thread; leave threads out")
    return found
