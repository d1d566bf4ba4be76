"""Count the connections that the measured process opens, by an audit hook.

Python raises an audit event for each `connect` of its sockets, whichever library calls it. The hook costs nothing
between connections. Libraries in C or Rust, and uvloop, do not use Python's sockets: their clients and loops call the
log's `connected` themselves. Failed attempts are counted separately, where the error is recorded.
"""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from clientlab.errors import unopened
from clientlab.samples.log import SampleLog

if TYPE_CHECKING:
    import asyncio


@dataclass(frozen=True)
class PeerAddress:
    """The port of the upstream. `refusing`: IP addresses of its host name that refuse connections.

    ``localhost`` often means ::1 first, then 127.0.0.1. A refused attempt opens no connection.
    """

    port: int
    refusing: tuple[str, ...] = ()


NOWHERE = PeerAddress(0)
_PYTHONS_OWN = socket.socket  # before gevent replaces it


class _Target:
    """The target of the audit hook. Python cannot remove a hook, so it is added once and reads these attributes."""

    log: SampleLog | None = None
    address = NOWHERE
    hooked = False


def count_into(log: SampleLog | None, address: PeerAddress) -> None:
    """Count this process's connections to `address` in `log` from now on. None stops counting."""
    _Target.log = log
    _Target.address = address
    if not _Target.hooked:
        sys.addaudithook(_hook)
        _Target.hooked = True


def opened() -> None:
    """Count a connection that was opened without Python's sockets."""
    if _Target.log is not None:
        _Target.log.connected()


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if event != "socket.connect" or _Target.log is None:
        return
    peer = arguments[1]
    is_internet = isinstance(peer, tuple) and len(peer) >= 2
    ours = is_internet and peer[1] == _Target.address.port and peer[0] not in _Target.address.refusing
    if ours and not _is_connected(arguments[0]):
        _Target.log.connected()


def _is_connected(connecting: Any) -> bool:
    """Return whether the socket is connected already: gevent calls `connect` a second time to learn that it is."""
    if type(connecting) is _PYTHONS_OWN:
        return False
    try:
        connecting.getpeername()
    except OSError:
        return False
    return True


LoopFactory = Callable[[], "asyncio.AbstractEventLoop"]


def factory(name: str) -> LoopFactory:
    """Return the factory of an event loop, asyncio or uvloop. Raise ValueError or ImportError."""
    import asyncio  # noqa: PLC0415 - gevent has to patch ssl before asyncio imports it

    if name == "asyncio":
        return asyncio.new_event_loop
    if name != "uvloop":
        raise ValueError(f"no event loop {name!r}")
    import uvloop  # noqa: PLC0415 - only strategies on uvloop need it

    class CountingLoop(uvloop.Loop):
        """uvloop connects in C, without Python's audit events, unless it gets a connected socket."""

        async def create_connection(self, *arguments: Any, **keywords: Any) -> Any:
            try:
                connection = await super().create_connection(*arguments, **keywords)
            except BaseException as error:
                if keywords.get("sock") is None and unopened(error, "connect"):
                    opened()
                raise
            if keywords.get("sock") is None:
                opened()
            return connection

    return CountingLoop
