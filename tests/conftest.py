"""Pure tests, and `real` ones that start processes or servers. scripts/test explains
how they run.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import sys

import pytest

RERUNS = 2
"""How often a failed `real` test is retried, because machines are shared and noisy."""
MOST_RETRIED = 10
"""How many retried tests a run may have.

More than that is a defect and not a noisy machine.
"""
STARTS_SOMETHING = {
    "subprocess.Popen",
    "os.fork",
    "os.forkpty",
    "os.posix_spawn",
    "socket.bind",
    "socket.connect",
}
"""Audit events that only `real` tests may cause."""


class _Purity:
    """Fails tests that start a process or use a socket without the mark `real`."""

    def __init__(self) -> None:
        self._is_pure = False
        self._events: set[str] = set()
        sys.addaudithook(self._audit)

    def _audit(self, event: str, _arguments: tuple[object, ...]) -> None:
        if self._is_pure and event in STARTS_SOMETHING:
            self._events.add(event)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item):
        """Watch the test and its fixtures."""
        self._is_pure = item.get_closest_marker("real") is None
        self._events = set()
        try:
            return (yield)
        finally:
            self._is_pure = False

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item):
        """Fail the test if it did what pure tests must not do."""
        result = yield
        if self._events:
            pytest.fail(
                f"mark {item.name} with pytest.mark.real:"
                f" {', '.join(sorted(self._events))}",
                pytrace=False,
            )
        return result


def pytest_addoption(parser):
    parser.addoption(
        "--all", action="store_true", help="also the tests marked `release`"
    )


def pytest_configure(config):
    config.pluginmanager.register(_Purity())


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    """Leave out `release` tests unless they are requested, and let failed `real` tests
    be retried.
    """
    if not config.getoption("all"):
        config.hook.pytest_deselected(
            items=[item for item in items if item.get_closest_marker("release")]
        )
        items[:] = [item for item in items if not item.get_closest_marker("release")]
    for item in items:
        if item.get_closest_marker("real"):
            item.add_marker(pytest.mark.flaky(reruns=RERUNS))
    # These libraries bind a socket or start a program when they are imported, for which
    # no pure test is to blame.
    for library in ("trio", "urllib3", "urllib3_future"):
        with contextlib.suppress(ImportError):
            importlib.import_module(library)
    # Some tests serve from a thread of this process. A full garbage collection of all
    # imported modules takes 70 ms, during which they do not answer. hypothesis comes
    # first: it looks for referrers, and finds no frozen objects.
    importlib.import_module("hypothesis")
    gc.collect()
    gc.freeze()


def _first_failures(config) -> dict[str, str]:
    """Return the first failure of each retried test, by the test's id."""
    failures: dict[str, str] = {}
    for report in config.pluginmanager.get_plugin("terminalreporter").stats.get(
        "rerun", ()
    ):
        failures.setdefault(report.nodeid, report.longreprtext)
    return failures


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session):
    """Fail the run if too many tests were retried."""
    if len(_first_failures(session.config)) > MOST_RETRIED:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter, config):
    """List the retried tests, each with its first failure."""
    if failures := _first_failures(config):
        terminalreporter.section(
            f"{len(failures)} retried tests; a run may have {MOST_RETRIED}"
        )
    for test, failure in failures.items():
        terminalreporter.write_line(f"RETRIED {test}")
        terminalreporter.write_line(
            "\n".join(f"    {line}" for line in failure.splitlines()[-12:])
        )
