"""A client for each thread, of a client class that the threads could share. It imports no library."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar

from clientlab.clients.client_interface import Budget, Opened, Sink, StatusAndBody
from clientlab.workload.workload import Request


class _OfThread(threading.local):
    """The client of a thread, and its `send`, bound once: a request pays for one look-up more than a shared client."""

    client: Any = None
    send: Callable[[Request], StatusAndBody] | None = None


class PerThread:
    """One client of the class `shared` for each thread that sends, each with one connection.

    `open` makes as many as the budget has connections, before the first request is sent.
    """

    shared: ClassVar[type[Any]]

    def __init__(self, budget: Budget, opened: Opened) -> None:
        self._budget = replace(budget, connections=1)
        self._opened = opened
        self._threads = budget.connections or 1
        self._all: list[Any] = []

    def open(self) -> None:
        self._free = [self._new() for _ in range(self._threads)]
        self._of_thread = _OfThread()

    def send(self, request: Request) -> StatusAndBody:
        send = self._of_thread.send or self._taken().send
        return send(request)

    def stream(self, request: Request, sink: Sink) -> int:
        return int(self._taken().stream(request, sink))

    def close(self) -> None:
        for client in self._all:
            client.close()

    def _taken(self) -> Any:
        """Return the client of this thread. A thread beyond the budget gets a new one."""
        mine = self._of_thread
        if mine.client is None:
            try:
                mine.client = self._free.pop()
            except IndexError:
                mine.client = self._new()
            mine.send = mine.client.send
        return mine.client

    def _new(self) -> Any:
        client = self.shared(self._budget, self._opened)
        client.open()
        self._all.append(client)
        return client


class TimedPerThread(PerThread):
    """The same for a library that measures its requests itself."""

    def timed(self, request: Request) -> tuple[int, bytes, float]:
        return self._taken().timed(request)  # type: ignore[no-any-return]
