"""Blocking requests one after the other, by a thread pool, and by threads that share a queue."""

from __future__ import annotations

import itertools
import queue
import threading
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice

from clientlab.executors.executor_interface import TASKS_AHEAD, ExecutorContext, RequestNumbers
from clientlab.executors.pacing import PacedNumbers


class Serial:
    """A loop of calls in one thread."""

    def __init__(self, context: ExecutorContext) -> None:
        self._context = context

    def open(self) -> None:
        self._call = self._context.open(self._context.concurrency)

    def run(self, numbers: RequestNumbers) -> None:
        self._call.send_all(numbers)

    def close(self) -> None:
        self._call.close()


class _Batches:
    """Tasks of a pool that are handed over in batches of `size`: to wake for each that ends would cost CPU time."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._count = itertools.count(1).__next__
        self._ended = queue.SimpleQueue[None]()

    def end_one(self) -> None:
        """Count a task that has ended."""
        if self._count() % self._size == 0:
            self._ended.put(None)

    def keep_ahead(self, hand_over: Callable[[], None], over: Callable[[], bool]) -> None:
        """Hand over tasks until it is over. Returns when all of them have ended."""
        left = TASKS_AHEAD
        for _ in range(left * self._size):
            hand_over()
        while left:
            self._ended.get()
            if over():
                left -= 1
                continue
            for _ in range(self._size):
                hand_over()


class Threads(Serial):
    """`ThreadPoolExecutor.map` over the requests: a future for each.

    With a duration, a future for each request too, with few ahead. In an open load, each thread takes the next number
    when it is due.
    """

    def open(self) -> None:
        super().open()
        self._pool = ThreadPoolExecutor(self._context.concurrency)

    def run(self, numbers: RequestNumbers) -> None:
        if numbers.count is not None:
            deque(self._pool.map(self._call, numbers), maxlen=0)
        elif isinstance(numbers, PacedNumbers):
            deque(self._pool.map(self._call.send_all, [numbers] * self._context.concurrency), maxlen=0)
        else:
            self._run_until_over(numbers)

    def _run_until_over(self, numbers: RequestNumbers) -> None:
        """Send until the deadline. A thread takes its number with its task, so no queued task is late."""
        batches, faults = _Batches(self._context.concurrency), list[BaseException]()

        def ended(task: Future[None]) -> None:
            if (fault := task.exception()) is not None:
                faults.append(fault)
            batches.end_one()

        def submit() -> None:
            self._pool.submit(self._call.send_all, islice(numbers, 1)).add_done_callback(ended)

        batches.keep_ahead(submit, lambda: numbers.over or bool(faults))
        if faults:
            raise faults[0]

    def close(self) -> None:
        self._pool.shutdown()
        super().close()


class ThreadQueue(Serial):
    """Threads on a `queue.Queue` with an item for each request.

    With a duration, an item for each request too, with few ahead. In an open load, each thread takes the next number
    when it is due.
    """

    def open(self) -> None:
        super().open()
        self._queue = queue.Queue[Iterable[int] | None]()
        self._batches: _Batches | None = None
        self._faults: list[Exception] = []
        self._threads = [threading.Thread(target=self._work) for _ in range(self._context.concurrency)]
        for thread in self._threads:
            thread.start()

    def run(self, numbers: RequestNumbers) -> None:
        if isinstance(numbers, PacedNumbers):
            for _ in self._threads:
                self._queue.put(numbers)
        elif numbers.count is not None:
            for number in numbers:
                self._queue.put((number,))
        else:  # a thread takes its number with its item: none that is queued when the time is over sends a request
            self._batches = _Batches(self._context.concurrency)
            self._batches.keep_ahead(
                lambda: self._queue.put(islice(numbers, 1)), lambda: numbers.over or bool(self._faults)
            )
        self._queue.join()
        if self._faults:
            raise self._faults[0]

    def close(self) -> None:
        for _ in self._threads:
            self._queue.put(None)
        for thread in self._threads:
            thread.join()
        super().close()

    def _work(self) -> None:
        while (numbers := self._queue.get()) is not None:
            try:
                self._call.send_all(numbers)
            except Exception as error:  # noqa: BLE001 - `run` raises it
                self._faults.append(error)
            finally:
                if self._batches is not None:
                    self._batches.end_one()
                self._queue.task_done()
