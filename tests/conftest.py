"""What all tests share: the options that say how many clients and scenarios are tested, and the order of files."""

from __future__ import annotations

from collections import Counter

import pytest
from xdist.scheduler import LoadFileScheduling

from signal_handlers import IN_A_TERMINAL, handling

CONTAINERS = "tests/containers/"


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
    """Files with many slow tests come first: of several at a time, none then runs on by itself at the end.

    The containers come before all: they take longest, and mostly wait.

    Slow tests with a further client of a library are left out unless they are asked for.
    """
    if not config.getoption("every_client"):
        left_out = [item for item in items if item.get_closest_marker("further_client")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not item.get_closest_marker("further_client")]
    slow = Counter(item.path for item in items if item.get_closest_marker("slow"))
    items.sort(key=lambda item: (not item.nodeid.startswith(CONTAINERS), -slow[item.path]))


class _ByFile(LoadFileScheduling):
    """Gives each process a file at a time. All files of the containers go to one: their tests share a lab."""

    def _split_scope(self, nodeid: str) -> str:
        return CONTAINERS if nodeid.startswith(CONTAINERS) else super()._split_scope(nodeid)


def pytest_xdist_make_scheduler(config, log):
    return _ByFile(config, log)
