"""A pool of processes, one request or one chunk a task; each process has its own client and its own connection."""

from __future__ import annotations

import contextlib
import itertools
import multiprocessing
import sys
import threading
from collections import deque
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import util
from multiprocessing.synchronize import Barrier

from clientlab.executors.shape import Bench, Caller, Numbers

# Named, since Python 3.14 changed its default: fork is what the articles ran and what is cheap,
# but macOS' own libraries do not survive it.
START_METHOD = "spawn" if sys.platform == "darwin" else "fork"

_callers: list[Caller] = []  # in a process of the pool: its one caller
_meetings: list[Barrier] = []  # and where all of them meet once, if they are to be warm
_MEETING_SECONDS = 20.0


class Processes:
    """`ProcessPoolExecutor.map` with chunks of one; without a count, each process draws its own."""

    def __init__(self, bench: Bench, *, start_method: str = START_METHOD) -> None:
        self._bench = bench
        self._context = multiprocessing.get_context(start_method)

    def open(self) -> None:
        processes = self._bench.concurrency
        meeting = self._context.Barrier(processes) if self._bench.warm else None
        self._pool = ProcessPoolExecutor(processes, self._context, initializer=_start, initargs=(self._bench, meeting))

    def run(self, numbers: Numbers) -> None:
        if numbers.count is not None:
            self._map(numbers)
            return
        processes = self._bench.concurrency
        shares = [(numbers.deadline, first, processes) for first in range(processes)]
        deque(self._pool.map(_send_until, shares), maxlen=0)

    def close(self) -> None:
        self._pool.shutdown()

    def _map(self, numbers: Iterable[int]) -> None:
        deque(self._pool.map(_send, numbers), maxlen=0)


class ProcessChunks(Processes):
    """The same with a chunk for each process, as equal as can be, so that a task is sent but once for many."""

    def _map(self, numbers: Iterable[int]) -> None:
        every, processes = list(numbers), self._bench.concurrency
        size, longer = divmod(len(every), processes)
        ends = [size * i + min(i, longer) for i in range(processes + 1)]
        chunks = [every[start:end] for start, end in itertools.pairwise(ends) if start < end]
        deque(self._pool.map(_send_chunk, chunks), maxlen=0)


def _start(bench: Bench, meeting: Barrier | None) -> None:
    caller = bench.open(connections=1)
    _callers.append(caller)
    if meeting is not None:
        _meetings.append(meeting)
    # A pool's processes run no `atexit`, but they do run their finalizers.
    util.Finalize(None, caller.close, exitpriority=10)


def _send(number: int) -> None:
    _callers[0](number)
    if _meetings:
        _meet()


def _send_chunk(numbers: list[int]) -> None:
    _callers[0].drain(numbers)
    if _meetings:
        _meet()


def _meet() -> None:
    """Take no second task before every process has done its first: so all of them are warm."""
    with contextlib.suppress(threading.BrokenBarrierError):  # so many never came
        _meetings.pop().wait(_MEETING_SECONDS)


def _send_until(share: tuple[float | None, int, int]) -> None:
    deadline, first, step = share
    _callers[0].drain(Numbers(None, deadline, first, step))
