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

    made: ClassVar[list[_Shared]]

    def __init__(self, budget, opened):
        self.budget, self.opened, self.threads, self.closed = budget, opened, set(), False
        self.made.append(self)

    def open(self):
        """Nothing to open."""

    def send(self, request):
        self.threads.add(threading.get_ident())
        return 200, request.url.encode()

    def close(self):
        self.closed = True


class _Own(PerThread):
    shared = _Shared


@pytest.fixture(autouse=True)
def _none_made():
    _Shared.made = []


def _send_from(client: PerThread, threads: int) -> None:
    """Each thread sends twice, and none ends before all have sent."""
    together = threading.Barrier(threads)
    request = Request("GET", "http://127.0.0.1/", {}, None)

    def send(_: int) -> None:
        client.send(request)
        together.wait()
        assert client.send(request) == (200, b"http://127.0.0.1/")

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(send, range(threads)))


def test_each_thread_has_a_client_of_its_own_that_was_made_before_the_first_request():
    """As many as the budget has connections, each with one; `close` closes all."""
    client = _Own(Budget(connections=3, timeout=5.0), lambda: None)
    client.open()
    assert [one.budget.connections for one in _Shared.made] == [1, 1, 1]
    _send_from(client, 3)
    assert len(_Shared.made) == 3
    assert sorted(len(one.threads) for one in _Shared.made) == [1, 1, 1]
    client.close()
    assert all(one.closed for one in _Shared.made)


def test_a_thread_beyond_the_budget_has_its_own_too():
    """An executor of a user may have more threads than connections."""
    client = _Own(Budget(connections=1, timeout=5.0), lambda: None)
    client.open()
    _send_from(client, 2)
    client.close()
    assert [len(one.threads) for one in _Shared.made] == [1, 1]
    assert all(one.closed for one in _Shared.made)
