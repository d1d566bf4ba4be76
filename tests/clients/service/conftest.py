"""Where the services of these tests keep their runs, and labs with workers that are processes."""

from __future__ import annotations

import contextlib

import pytest

from clientlab.results.store import Store
from clientlab.service import dispatcher
from clients.labs import Labs
from clients.service.virtual_clock import VirtualClock
from running import gunicorn


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "results")


@pytest.fixture
def clock(monkeypatch):
    """The clock of a dispatcher and of its event loop, on which a wait costs nothing."""
    made = VirtualClock()
    monkeypatch.setattr(dispatcher, "time", made)
    return made


@pytest.fixture(scope="module")
def upstream():
    """The upstream that all these tests measure against."""
    with gunicorn("aiohttp") as server:
        yield server


@pytest.fixture
def labs(tmp_path, upstream):
    """Starts labs and workers in a folder of their own."""
    with contextlib.ExitStack() as stack:
        yield Labs(tmp_path, upstream.port, stack)
