"""Trials that are begun before their tests ask for them, some at once: most of their time is spent waiting."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

AT_ONCE = 5


def begun_ahead(request: Any, parameter: str, trial: Callable[[str], Any]) -> Iterator[Callable[[str], Any]]:
    """For a module's fixture: a function from a value of `parameter` to the result of its trial.

    The trials of all tests of the module that use the fixture begin in the tests' order. None outlives the module.
    """
    name = request.fixturename
    tests = [item for item in request.session.items if item.path == request.path and name in item.fixturenames]
    pool = ThreadPoolExecutor(AT_ONCE)
    begun: dict[str, Future[Any]] = {}
    for value in dict.fromkeys(item.callspec.params[parameter] for item in tests):
        begun[value] = pool.submit(trial, value)
    yield lambda value: begun[value].result()
    pool.shutdown(cancel_futures=True)
