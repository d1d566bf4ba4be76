"""Event loops by name. Each counts the connections that it opens."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from clientlab.errors import unopened
from clientlab.measuring import connections

if TYPE_CHECKING:
    import asyncio

LoopFactory = Callable[[], "asyncio.AbstractEventLoop"]


def factory(name: str) -> LoopFactory:
    """A factory of event loops of `strategies.loops`. Raises ValueError for another name, ImportError without it."""
    import asyncio  # noqa: PLC0415 - gevent has to patch ssl before asyncio imports it

    if name == "asyncio":
        return asyncio.new_event_loop
    if name == "uvloop":
        return _counting_uvloop()
    if name == "rloop":  # it connects by Python's sockets, whose audit events count
        import rloop  # noqa: PLC0415 - only strategies on rloop need it

        made: LoopFactory = rloop.new_event_loop
        return made
    raise ValueError(f"no event loop {name!r}")


def _counting_uvloop() -> LoopFactory:
    import uvloop  # noqa: PLC0415 - only strategies on uvloop need it

    class CountingLoop(uvloop.Loop):
        """uvloop connects in C, without Python's audit events, unless it gets a connected socket."""

        async def create_connection(self, *arguments: Any, **keywords: Any) -> Any:
            try:
                connection = await super().create_connection(*arguments, **keywords)
            except BaseException as error:
                if keywords.get("sock") is None and unopened(error, "connect"):
                    connections.opened()
                raise
            if keywords.get("sock") is None:
                connections.opened()
            return connection

    return CountingLoop
