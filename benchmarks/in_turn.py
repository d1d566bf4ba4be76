"""The lab and a bare loop in turn, in one process: ``python -m benchmarks.in_turn STRATEGY URL N SECONDS FIRST [CA]``.

Prints the wall seconds of N requests in the lab and of N bare, as often as fits into SECONDS, once at least; FIRST,
``lab`` or ``bare``, begins. They take turns after `BLOCK` requests: what slows the machine down for a while slows both.
With many in flight they do so after all N: a turn makes its workers anew, and a trial makes them once. In one process
both have the same layout of memory, which differs from process to process by more than what is looked for. What is
timed of the lab is what a trial times: executor and client made and closed, every request recorded.
pyreqwest's log is its process's: the lab, which counts connections by it, reads the lines of the bare loop as well.
"""

from __future__ import annotations

import contextlib
import gc
import os
import sys
import tempfile
from collections.abc import Iterator
from time import perf_counter

from benchmarks.bare import Run
from benchmarks.bare_loops import bare_loop
from benchmarks.trials import Site, bench_on, expect_no_errors
from clientlab import strategies
from clientlab.executors.shape import Executor, Numbers
from clientlab.measuring.trial_process import executors_of
from clientlab.workload import Workload

WARM_UP, BLOCK = 10, 1000


def main(strategy: str, site: Site, count: int, seconds: float, *, lab_first: bool) -> tuple[float, float]:
    """Seconds in the lab, and bare."""
    executor_on = executors_of(bench_on(site, strategy, Workload(), ""))
    block = BLOCK if strategies.find(strategy).concurrency == 1 else count
    order = [0, 1] if lab_first else [1, 0]

    def once(count: int) -> list[float]:
        with tempfile.TemporaryDirectory() as folder:
            executor = executor_on(bench_on(site, strategy, Workload(requests=count), folder))
            took = _in_turn([_run_of(executor), bare_loop(strategy, site)], order, count, block)
            expect_no_errors(folder, 0.0)
        return took

    once(WARM_UP)
    lab = bare = 0.0
    ends = perf_counter() + seconds
    while True:
        lab, bare = map(sum, zip((lab, bare), once(count), strict=True))
        if perf_counter() >= ends:
            return lab, bare


@contextlib.contextmanager
def _run_of(executor: Executor) -> Iterator[Run]:
    executor.open()
    sent = 0

    def run(count: int) -> None:
        nonlocal sent
        executor.run(Numbers(count, first=sent))
        sent += count

    yield run
    executor.close()


def _in_turn(
    ways: list[contextlib.AbstractContextManager[Run]], order: list[int], count: int, block: int
) -> list[float]:
    """Seconds of each way for so many requests; `order` is turned over after each block."""
    took = [0.0] * len(ways)
    runs: dict[int, Run] = {}
    gc.collect()
    for way in order:
        began = perf_counter()
        runs[way] = ways[way].__enter__()
        took[way] += perf_counter() - began
    for first in range(0, count, block):
        for way in order:
            began = perf_counter()
            runs[way](min(block, count - first))
            took[way] += perf_counter() - began
        order.reverse()
    for way in order:
        began = perf_counter()
        ways[way].__exit__(None, None, None)
        took[way] += perf_counter() - began
    return took


if __name__ == "__main__":
    name, url, n, most, first, *ca = sys.argv[1:]
    print(*main(name, Site(url, *ca), int(n), float(most), lab_first=first == "lab"), flush=True)
    # pyreqwest's threads abort one program in three while Python ends it (PyGILState_Release, on Python 3.11).
    os._exit(0)
