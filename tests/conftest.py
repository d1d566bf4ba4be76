"""What all tests share: the option that says how much of the conformance checks is run, and the order of files."""

from __future__ import annotations

import pytest

from signal_handlers import IN_A_TERMINAL, handling


def pytest_addoption(parser):
    parser.addoption(
        "--full", action="store_true", help="every conformance scenario with every strategy, not the selection alone"
    )


@pytest.fixture
def terminal_signals():
    """Ctrl-C as in a terminal. Tests that a background job or a CI runner starts may have to ignore it."""
    with handling(IN_A_TERMINAL):
        yield


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    """Files with slow tests come first: of several at a time, none then runs on by itself at the end."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)
