"""A process pool with one request or one chunk per task, and what all executors with a pool of processes share.

Each process has its own client and its own connection.
"""

from __future__ import annotations

import contextlib
import itertools
import multiprocessing
import queue
import sys
import threading
from collections import deque
from collections.abc import Iterable
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing import util
from multiprocessing.context import BaseContext
from multiprocessing.synchronize import Barrier

from clientlab.errors import LabError
from clientlab.executors.executor_interface import TASKS_AHEAD, Caller, ExecutorContext, RequestNumbers
from clientlab.executors.pacing import PacedNumbers, prepare

# Explicit, because Python 3.14 changed the default. The articles ran fork, which is cheap;
# system libraries of macOS do not survive a fork.
START_METHOD = "spawn" if sys.platform == "darwin" else "fork"

MEETING_SECONDS = 20.0


class SharedCounter:
    """Counts from 0 on: each number of an open load is taken once, by whoever is free.

    It is handed to pool processes when they start, and not later.
    """

    def __init__(self, multiprocessing: BaseContext) -> None:
        self._next = multiprocessing.Value("q", 0)

    def take(self) -> int:
        """Return the next number."""
        with self._next.get_lock():
            number: int = self._next.value
            self._next.value = number + 1
        return number


def arrive(meeting: Barrier) -> None:
    """Wait until every process is here. Raises LabError if some have not come in time."""
    prepare()
    try:
        meeting.wait(MEETING_SECONDS)
    except threading.BrokenBarrierError:
        message = f"not all processes of the pool had started after {MEETING_SECONDS:g} s; lower -c"
        raise LabError(message) from None


# In a pool process:
_callers: list[Caller] = []  # its only caller
_meetings: list[Barrier] = []  # the barrier at which all pool processes meet once, before the measured part
_sources: list[tuple[ExecutorContext, SharedCounter]] = []  # whose numbers of an open load it takes


def _start(context: ExecutorContext, meeting: Barrier | None, counter: SharedCounter | None) -> None:
    caller = context.open(connections=1)
    _callers.append(caller)
    if meeting is not None:
        _meetings.append(meeting)
    if counter is not None:
        _sources.append((context, counter))
    # Pool processes do not run `atexit` functions, but they run finalizers.
    util.Finalize(None, caller.close, exitpriority=10)


def _arrive(_place: int) -> None:
    arrive(_meetings[0])


def _send(number: int) -> None:
    _callers[0](number)
    if _meetings:
        _meet()


def _send_chunk(numbers: list[int]) -> None:
    _callers[0].send_all(numbers)
    if _meetings:
        _meet()


def _meet() -> None:
    """Wait until every process has done its first task, so that all of them are there, and warm."""
    with contextlib.suppress(threading.BrokenBarrierError):  # some processes never arrived
        _meetings.pop().wait(MEETING_SECONDS)


def _send_paced(began: float) -> None:
    context, counter = _sources[0]
    if context.schedule is not None:
        _callers[0].send_all(PacedNumbers(context.schedule, began, counter.take))


def _send_until(share: tuple[float | None, int, int, int], most: int | None = None) -> bool:
    """Send a share of the numbers, or the first of them. Return whether requests were begun after the deadline."""
    deadline, first, step, least = share
    numbers = RequestNumbers(None, deadline, first, step, least=least)
    _callers[0].send_all(itertools.islice(numbers, most))
    return numbers.extended


class Processes:
    """`ProcessPoolExecutor.map` with chunks of one: a task for each request.

    With a duration, a task for each request too, with few ahead. In an open load, all processes are there before the
    schedule begins, and whichever is free takes the next number.
    """

    def __init__(self, context: ExecutorContext, *, start_method: str = START_METHOD) -> None:
        self._context = context
        self._multiprocessing = multiprocessing.get_context(start_method)

    def open(self) -> None:
        processes = self._context.concurrency
        is_paced = self._context.schedule is not None  # the processes inherit the schedule, which is computed once
        meeting = self._multiprocessing.Barrier(processes) if self._context.warm or is_paced else None
        shared = (self._context, meeting, SharedCounter(self._multiprocessing) if is_paced else None)
        self._pool = ProcessPoolExecutor(processes, self._multiprocessing, initializer=_start, initargs=shared)
        if is_paced and not self._context.warm:
            deque(self._pool.map(_arrive, range(processes)), maxlen=0)

    def run(self, numbers: RequestNumbers) -> None:
        if isinstance(numbers, PacedNumbers):
            deque(self._pool.map(_send_paced, [numbers.began] * self._context.concurrency), maxlen=0)
        elif numbers.count is not None:
            self._map(numbers)
        else:
            self._run_until_over(numbers)

    def close(self) -> None:
        self._pool.shutdown()

    def _map(self, numbers: Iterable[int]) -> None:
        deque(self._pool.map(_send, numbers), maxlen=0)

    def _run_until_over(self, numbers: RequestNumbers) -> None:
        """Send until the deadline. A process looks at the clock before it sends, so no queued task is late."""
        ended, left = queue.SimpleQueue[Future[bool]](), 0
        extended = False
        for number in numbers:
            task = numbers.deadline, number, 1, int(number < numbers.first + numbers.least)
            self._pool.submit(_send_until, task, most=1).add_done_callback(ended.put)
            left += 1
            if left == TASKS_AHEAD * self._context.concurrency:
                extended |= ended.get().result()
                left -= 1
        for _ in range(left):
            extended |= ended.get().result()
        numbers.extended = extended


class ProcessChunks(Processes):
    """`Processes` with one chunk of nearly equal size per process, so that one task covers many requests.

    With a duration, the chunk of each process is every n-th number.
    """

    def _map(self, numbers: Iterable[int]) -> None:
        every, processes = list(numbers), self._context.concurrency
        size, longer = divmod(len(every), processes)
        ends = [size * i + min(i, longer) for i in range(processes + 1)]
        chunks = [every[start:end] for start, end in itertools.pairwise(ends) if start < end]
        deque(self._pool.map(_send_chunk, chunks), maxlen=0)

    def _run_until_over(self, numbers: RequestNumbers) -> None:
        processes = self._context.concurrency
        least = -(-numbers.least // processes)
        shares = [(numbers.deadline, numbers.first + index, processes, least) for index in range(processes)]
        numbers.extended = any(list(self._pool.map(_send_until, shares)))  # all of them have to end
