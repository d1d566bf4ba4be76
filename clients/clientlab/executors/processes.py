"""A process pool with one request or one chunk per task. Each process has its own client and its own connection."""

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

from clientlab.executors.interfaces import Caller, ExecutorContext, Numbers

# Explicit, because Python 3.14 changed the default. The articles ran fork, which is cheap;
# system libraries of macOS do not survive a fork.
START_METHOD = "spawn" if sys.platform == "darwin" else "fork"

_callers: list[Caller] = []  # in a pool process: its only caller
_meetings: list[Barrier] = []  # the barrier at which all pool processes meet once in the warm-up
_MEETING_SECONDS = 20.0


class Processes:
    """`ProcessPoolExecutor.map` with chunks of one. With a duration, each process takes its own numbers."""

    def __init__(self, context: ExecutorContext, *, start_method: str = START_METHOD) -> None:
        self._context = context
        self._multiprocessing = multiprocessing.get_context(start_method)

    def open(self) -> None:
        processes = self._context.concurrency
        meeting = self._multiprocessing.Barrier(processes) if self._context.warm else None
        self._pool = ProcessPoolExecutor(
            processes, self._multiprocessing, initializer=_start, initargs=(self._context, meeting)
        )

    def run(self, numbers: Numbers) -> None:
        if numbers.count is not None:
            self._map(numbers)
            return
        processes = self._context.concurrency
        shares = [(numbers.deadline, first, processes) for first in range(processes)]
        deque(self._pool.map(_send_until, shares), maxlen=0)

    def close(self) -> None:
        self._pool.shutdown()

    def _map(self, numbers: Iterable[int]) -> None:
        deque(self._pool.map(_send, numbers), maxlen=0)


class ProcessChunks(Processes):
    """`Processes` with one chunk of nearly equal size per process, so that one task covers many requests."""

    def _map(self, numbers: Iterable[int]) -> None:
        every, processes = list(numbers), self._context.concurrency
        size, longer = divmod(len(every), processes)
        ends = [size * i + min(i, longer) for i in range(processes + 1)]
        chunks = [every[start:end] for start, end in itertools.pairwise(ends) if start < end]
        deque(self._pool.map(_send_chunk, chunks), maxlen=0)


def _start(context: ExecutorContext, meeting: Barrier | None) -> None:
    caller = context.open(connections=1)
    _callers.append(caller)
    if meeting is not None:
        _meetings.append(meeting)
    # Pool processes do not run `atexit` functions, but they run finalizers.
    util.Finalize(None, caller.close, exitpriority=10)


def _send(number: int) -> None:
    _callers[0](number)
    if _meetings:
        _meet()


def _send_chunk(numbers: list[int]) -> None:
    _callers[0].send_all(numbers)
    if _meetings:
        _meet()


def _meet() -> None:
    """Wait until every process has done its first task, so that all of them are warm."""
    with contextlib.suppress(threading.BrokenBarrierError):  # some processes never arrived
        _meetings.pop().wait(_MEETING_SECONDS)


def _send_until(share: tuple[float | None, int, int]) -> None:
    deadline, first, step = share
    _callers[0].send_all(Numbers(None, deadline, first, step))
