"""Connections opened, counted in the measured process itself, so that any server will do.

Python raises an audit event for each `connect` of its sockets, whichever library calls it, blocking or
not; it costs nothing between connections. Libraries in C or Rust, and uvloop, connect out of its sight:
their clients and loops call the log's `connected` themselves. Both are checked in the tests against a
server on raw sockets. Attempts that failed are counted apart, where the error is recorded.
"""

from __future__ import annotations

import socket
import sys
from dataclasses import dataclass
from typing import Any

from clientlab.sample import SampleLog


@dataclass(frozen=True)
class Address:
    """Where the upstream listens. `refusing`: addresses of its name where nothing does.

    ``localhost`` often means ::1 first and then 127.0.0.1: the attempt that is refused opens nothing.
    """

    port: int
    refusing: tuple[str, ...] = ()


NOWHERE = Address(0)
_PYTHONS_OWN = socket.socket  # as it is before gevent puts another in its place


class _Target:
    """What the hook writes to. A hook can't be taken away again, so it is added once and looks here."""

    log: SampleLog | None = None
    address = NOWHERE
    hooked = False


def count_into(log: SampleLog | None, address: Address) -> None:
    """From now on count this process's connections to `address` into `log`."""
    _Target.log = log
    _Target.address = address
    if not _Target.hooked:
        sys.addaudithook(_hook)
        _Target.hooked = True


def opened() -> None:
    """Count a connection that Python did not see."""
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
    """Whether a socket that is told to connect is connected: gevent tells its own twice, to see that it is."""
    if type(connecting) is _PYTHONS_OWN:
        return False
    try:
        connecting.getpeername()
    except OSError:
        return False
    return True
