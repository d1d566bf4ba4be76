"""What all tests share: the options that say how many clients and scenarios are tested, and the order of files."""

from __future__ import annotations

import pytest

from signal_handlers import IN_A_TERMINAL, handling


def pytest_addoption(parser):
    parser.addoption(
        "--every-client", action="store_true", help="slow tests with every client, not with one of each library alone"
    )
    parser.addoption("--full", action="store_true", help="the same, and every conformance scenario with every strategy")


def pytest_configure(config):
    if config.getoption("full"):
        config.option.every_client = True


@pytest.fixture
def terminal_signals():
    """Ctrl-C as in a terminal. Tests that a background job or a CI runner starts may have to ignore it."""
    with handling(IN_A_TERMINAL):
        yield


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    """Files with slow tests come first: of several at a time, none then runs on by itself at the end.

    Slow tests with a further client of a library are left out unless they are asked for.
    """
    if not config.getoption("every_client"):
        left_out = [item for item in items if item.get_closest_marker("further_client")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not item.get_closest_marker("further_client")]
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)
