"""Conformance of many strategies, some trials at once: nothing in them is timed closely."""

from __future__ import annotations

import functools
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from clientlab import strategies
from clientlab.conformance import SCENARIOS, CheckResult

AT_ONCE = 7
"""Trials at once on two cores: most of the time of a scenario is spent waiting."""

BY_NAME = {scenario.name: scenario for scenario in SCENARIOS}


def judge(strategy: str, scenario: str) -> list[CheckResult]:
    """Each result of one scenario."""
    return BY_NAME[scenario].judge(strategies.find(strategy))


@pytest.fixture(scope="module")
def judged(request):
    """The result of a check of a strategy. The trials that the module will ask for are begun in its tests' order.

    None of them outlives the module: tests of other modules look for processes that were left behind.
    """
    tests = [item for item in request.session.items if item.path == request.path and "judged" in item.fixturenames]
    asked = [item.callspec.params["asked"] for item in tests]
    pool = ThreadPoolExecutor(AT_ONCE)
    begun: dict[tuple[str, str], Future[list[CheckResult]]] = {}
    for strategy, scenario, _ in asked:
        if (strategy, scenario) not in begun:
            begun[strategy, scenario] = pool.submit(judge, strategy, scenario)

    @functools.cache
    def results(strategy: str, scenario: str) -> dict[str, CheckResult]:
        return {result.check: result for result in begun[strategy, scenario].result()}

    def result(strategy: str, scenario: str, check: str) -> CheckResult:
        found = results(strategy, scenario)[check]
        if found.unchecked:
            pytest.skip(found.unchecked)
        return found

    yield result
    pool.shutdown(cancel_futures=True)
