"""What all tests share: the options that say how many clients and scenarios are tested, and the order of files."""

from __future__ import annotations

import gc
from collections import Counter

import pytest
from xdist.scheduler import LoadFileScheduling

from signal_handlers import IN_A_TERMINAL, handling

CONTAINERS = "tests/containers/"
LONG = (
    "tests/clients/service/test_lab_and_workers.py",
    "tests/clients/cli/test_run.py",
    "tests/clients/service/test_shards.py",
    "tests/clients/cli/test_conform.py",
    "tests/docs/test_own_client.py",
    "tests/docs/test_site.py",
)
"""Files with few tests that take a minute or more, by themselves and on two cores."""


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
    """Long files come first, then those with many slow tests: of several at a time, none runs on alone at the end.

    The containers come before all: they take longest, and mostly wait.

    Slow tests with a further client of a library are left out unless they are asked for.
    """
    if not config.getoption("every_client"):
        left_out = [item for item in items if item.get_closest_marker("further_client")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not item.get_closest_marker("further_client")]
    slow = Counter(item.path for item in items if item.get_closest_marker("slow"))
    long = {config.rootpath / name for name in LONG}
    if gone := [str(path) for path in long if not path.exists()]:
        raise pytest.UsageError(f"LONG in tests/conftest.py names files that are not there: {', '.join(sorted(gone))}")
    items.sort(key=lambda item: (not item.nodeid.startswith(CONTAINERS), item.path not in long, -slow[item.path]))
    # Servers of tests are threads of this process. To look through all that was imported for garbage takes 70 ms, and
    # meanwhile they answer nobody, in the middle of a trial.
    import hypothesis  # noqa: F401, PLC0415 - it looks for referrers of objects, and finds none that are frozen

    gc.collect()
    gc.freeze()


class _ByFile(LoadFileScheduling):
    """Gives each process a file at a time. All files of the containers go to one: their tests share a lab."""

    def _split_scope(self, nodeid: str) -> str:
        return CONTAINERS if nodeid.startswith(CONTAINERS) else super()._split_scope(nodeid)


def pytest_xdist_make_scheduler(config, log):
    return _ByFile(config, log)
