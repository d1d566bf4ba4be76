"""The servers of a link: a listening socket for each upstream or proxy, all behind the same two directions."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass

from clientlab.link.addresses import HostPort
from clientlab.link.agenda import Agenda
from clientlab.link.connection import Directions, RelayedConnection
from clientlab.link.timer import precise_timer
from clientlab.workload.link import Link

_BACKLOG = 65_535
"""Connections that may wait to be accepted, if the system permits so many (net.core.somaxconn)."""


@dataclass(frozen=True)
class Forward:
    """Connections to `listener`, a bound socket, lead to `target`."""

    listener: socket.socket
    target: HostPort


@contextlib.asynccontextmanager
async def serving(link: Link, forwards: Sequence[Forward]) -> AsyncIterator[None]:
    """Accept connections. The listeners are closed in the end."""
    loop = asyncio.get_running_loop()
    async with contextlib.AsyncExitStack() as stack:
        timer = stack.enter_context(contextlib.closing(precise_timer(loop)))
        agenda = Agenda(time.monotonic, timer.set)
        timer.start(agenda.run)
        directions = Directions.of(link, agenda)
        for forward in forwards:
            accept = _accepting(directions, forward.target)
            server = await loop.create_server(accept, sock=forward.listener, backlog=_BACKLOG)
            stack.callback(server.close)
        yield


def _accepting(directions: Directions, target: HostPort) -> Callable[[], asyncio.Protocol]:
    def accept() -> asyncio.Protocol:
        client = RelayedConnection(directions, target).client
        assert client is not None  # noqa: S101 - it was just made
        return client

    return accept
