"""The event loops that a strategy on asyncio may run on: the values of its setting ``loop``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from clientlab.strategies.specs import EXTRA


@dataclass(frozen=True)
class LoopSpec:
    """An event loop of asyncio. `refused`: why no strategy can run on it."""

    name: str
    distribution: str  # the run file has its version; "python": the standard library
    extra: str = EXTRA  # the extra of pyproject.toml that installs it
    has_tls: bool = True
    refused: str = ""


LOOPS: dict[str, LoopSpec] = {
    spec.name: spec
    for spec in (
        LoopSpec("asyncio", "python"),
        LoopSpec("uvloop", "uvloop"),
        LoopSpec("rloop", "rloop", extra="more", has_tls=False),
        LoopSpec("winloop", "winloop", refused="it is uvloop for Windows, where the lab does not run"),
    )
}


def loop_of(settings: Mapping[str, Any]) -> LoopSpec:
    """The loop that the settings of a strategy name, or that of Python. `settings` may name one that is unknown."""
    return LOOPS.get(str(settings.get("loop")), LOOPS["asyncio"])


def loop_advice(name: object) -> str | None:
    """What to write instead, if no strategy can run on a loop of that name."""
    if name in LOOPS and not LOOPS[str(name)].refused:
        return None
    *names, last = (spec.name for spec in LOOPS.values() if not spec.refused)
    refused = f"; {LOOPS[str(name)].refused}" if name in LOOPS else ""
    return f"{', '.join(names)} or {last}{refused}"
