"""Clients with one session for each thread."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import ClassVar

import pytest

from clientlab.clients.client_interface import Budget
from clientlab.clients.per_thread import PerThread
from clientlab.workload.workload import Request


class _Shared:
    """A client that notes who used it."""

    made: ClassVar[list[_Shared]] = []

    def __init__(self, budget, opened):
        self.budget, self.opened, self.threads, self.closed = budget, opened, set(), False
        self.made.append(self)

    def open(self):
        assert self.budget.connections == 1

    def send(self, request):
        self.threads.add(threading.get_ident())
        return 200, request.url.encode()

    def close(self):
        self.closed = True


class _Own(PerThread):
    shared = _Shared


@pytest.mark.parametrize(("connections", "threads"), [(3, 3), (1, 2)])
def test_each_thread_has_a_client_of_its_own(connections, threads):
    """As many as the budget has connections are made before the first request; a thread beyond it gets one too."""
    _Shared.made.clear()
    client = _Own(Budget(connections=connections, timeout=5.0), lambda: None)
    client.open()
    assert len(_Shared.made) == connections
    together = threading.Barrier(threads)
    request = Request("GET", "http://127.0.0.1/", {}, None)

    def send(_: int) -> None:
        client.send(request)
        together.wait()
        assert client.send(request) == (200, b"http://127.0.0.1/")

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(send, range(threads)))
    client.close()
    assert [len(one.threads) for one in _Shared.made] == [1] * threads
    assert all(one.closed for one in _Shared.made)
