"""Two kinds of tests: pure ones, and `real` ones that start processes or servers. See scripts/test for how they run."""

from __future__ import annotations

import contextlib
import gc
import importlib
import sys

import pytest

from signal_handlers import IN_A_TERMINAL, handling

RERUNS = 2
"""How often a failed `real` test is tried again, because machines are shared and noisy."""
MOST_RETRIED = 10
"""How many retried tests a run may have. More than that is a defect and not a noisy machine."""
STARTS_SOMETHING = {"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "socket.bind", "socket.connect"}
"""Audit events that make a test `real`."""
UNEASY_IMPORTS = ("trio", "urllib3", "urllib3_future")
"""Libraries that bind a socket or start a program when they are imported, which no pure test should be blamed for."""


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
        self._is_pure, self._events = item.get_closest_marker("real") is None, set()
        try:
            return (yield)
        finally:
            self._is_pure = False

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item):
        """Fail the test if it did what pure tests must not do."""
        result = yield
        if self._events:
            pytest.fail(f"mark {item.name} with pytest.mark.real: {', '.join(sorted(self._events))}", pytrace=False)
        return result


def pytest_addoption(parser):
    parser.addoption("--all", action="store_true", help="also the tests marked `release`")


def pytest_configure(config):
    config.pluginmanager.register(_Purity())


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    """Leave out `release` tests unless asked for, and let failed `real` tests be tried again."""
    if not config.getoption("all"):
        config.hook.pytest_deselected(items=[item for item in items if item.get_closest_marker("release")])
        items[:] = [item for item in items if not item.get_closest_marker("release")]
    for item in items:
        if item.get_closest_marker("real"):
            item.add_marker(pytest.mark.flaky(reruns=RERUNS))
    for library in UNEASY_IMPORTS:
        with contextlib.suppress(ImportError):
            importlib.import_module(library)
    # Some tests serve from a thread of this process. A full garbage collection over everything that was imported takes
    # 70 ms, during which they answer nobody.
    import hypothesis  # noqa: F401, PLC0415 - it looks for referrers of objects, and finds none that are frozen

    gc.collect()
    gc.freeze()


def _first_failures(config) -> dict[str, str]:
    """Return the first failure of each retried test, by the test's id."""
    failures: dict[str, str] = {}
    for report in config.pluginmanager.get_plugin("terminalreporter").stats.get("rerun", ()):
        failures.setdefault(report.nodeid, report.longreprtext)
    return failures


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session):
    """Fail the run if too many tests were retried."""
    if len(_first_failures(session.config)) > MOST_RETRIED:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter, config):
    """List the retried tests, each with its first failure."""
    failures = _first_failures(config)
    if not failures:
        return
    terminalreporter.section(f"{len(failures)} retried tests; a run may have {MOST_RETRIED}")
    for test, failure in failures.items():
        terminalreporter.write_line(f"RETRIED {test}")
        terminalreporter.write_line("\n".join(f"    {line}" for line in failure.splitlines()[-12:]))


@pytest.fixture
def terminal_signals():
    """Ctrl-C as in a terminal. Tests that a background job or a CI runner starts may have to ignore it."""
    with handling(IN_A_TERMINAL):
        yield
