"""A pool of processes, one request a task; each process has its own client and its own connection."""

from __future__ import annotations

import multiprocessing
import sys
from collections import deque
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import util

from clientlab.executors.shape import Bench, Caller, Numbers

# Named, since Python 3.14 changed its default: fork is what the articles ran and what is cheap,
# but macOS' own libraries do not survive it.
START_METHOD = "spawn" if sys.platform == "darwin" else "fork"

_callers: list[Caller] = []  # in a process of the pool: its one caller


class Processes:
    """`ProcessPoolExecutor.map` with chunks of one; without a count, each process draws its own."""

    def __init__(self, bench: Bench, start_method: str = START_METHOD) -> None:
        self._bench = bench
        self._context = multiprocessing.get_context(start_method)

    def open(self) -> None:
        self._pool = ProcessPoolExecutor(
            self._bench.concurrency, self._context, initializer=_start, initargs=(self._bench,)
        )

    def run(self, numbers: Numbers) -> None:
        if numbers.count is not None:
            deque(self._pool.map(_send, numbers), maxlen=0)
            return
        processes = self._bench.concurrency
        shares = [(numbers.deadline, first, processes) for first in range(processes)]
        deque(self._pool.map(_send_until, shares), maxlen=0)

    def close(self) -> None:
        self._pool.shutdown()


def _start(bench: Bench) -> None:
    caller = bench.open(connections=1)
    _callers.append(caller)
    # A pool's processes run no `atexit`, but they do run their finalizers.
    util.Finalize(None, caller.close, exitpriority=10)


def _send(number: int) -> None:
    _callers[0](number)


def _send_until(share: tuple[float | None, int, int]) -> None:
    deadline, first, step = share
    _callers[0].drain(Numbers(None, deadline, first, step))
