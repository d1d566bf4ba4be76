"""Conformance of many strategies, some trials at once: nothing in them is timed closely."""

from __future__ import annotations

import functools
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from clientlab import strategies
from clientlab.conformance import DRILLS, Result

AT_ONCE = 4
"""Trials at once: half of a drill's time is spent waiting."""

BY_NAME = {drill.name: drill for drill in DRILLS}


@pytest.fixture(scope="session")
def judged(request):
    """The results of a drill of a strategy, by check: those that the tests will ask for, begun in their order."""
    asked = [item.callspec.params["asked"] for item in request.session.items if "judged" in item.fixturenames]
    pool = ThreadPoolExecutor(AT_ONCE)
    begun: dict[tuple[str, str], Future[list[Result]]] = {}
    for strategy, drill, _ in asked:
        if (strategy, drill) not in begun:
            begun[strategy, drill] = pool.submit(BY_NAME[drill].judge, strategies.find(strategy))

    @functools.cache
    def results(strategy: str, drill: str) -> dict[str, Result]:
        return {result.check: result for result in begun[strategy, drill].result()}

    yield results
    pool.shutdown(cancel_futures=True)
