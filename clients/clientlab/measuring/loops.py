"""Event loops by name, made so that connections are counted whichever of them opens one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from clientlab.errors import unopened
from clientlab.measuring import connections

if TYPE_CHECKING:
    import asyncio

LoopFactory = Callable[[], "asyncio.AbstractEventLoop"]

LOOPS = ("asyncio", "uvloop")


def factory(name: str) -> LoopFactory:
    """Makes event loops of that name. Raises ValueError for another; ImportError without uvloop."""
    import asyncio  # noqa: PLC0415 - gevent's trials patch ssl before it is imported

    if name == "asyncio":
        return asyncio.new_event_loop
    if name == "uvloop":
        return _counting_uvloop()
    raise ValueError(f"no event loop {name!r}; there are {', '.join(LOOPS)}")


def _counting_uvloop() -> LoopFactory:
    import uvloop  # noqa: PLC0415 - only where it is asked for

    class CountingLoop(uvloop.Loop):
        """uvloop connects in C, out of sight of Python's audit events, unless it is handed a socket."""

        async def create_connection(self, *words: Any, **named: Any) -> Any:
            try:
                made = await super().create_connection(*words, **named)
            except BaseException as error:
                if named.get("sock") is None and unopened(error, "connect"):
                    connections.opened()
                raise
            if named.get("sock") is None:
                connections.opened()
            return made

    return CountingLoop
