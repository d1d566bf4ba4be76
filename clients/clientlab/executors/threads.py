"""Blocking requests: serial, in threads, and by a pool, a queue or requests-futures."""

from __future__ import annotations

import importlib
import itertools
import queue
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from itertools import islice
from typing import Any

from clientlab.executors.executor_interface import (
    TASKS_AHEAD,
    Caller,
    Executor,
    ExecutorSpec,
    RequestNumbers,
)
from clientlab.executors.pacing import PacedNumbers


@ExecutorSpec("serial", concurrent=False)
class Serial(Executor):
    """One request after the other in one thread."""

    def open(self) -> None:
        self._call = self._context.open(self._context.concurrency)

    def run(self, numbers: RequestNumbers) -> None:
        self._call.send_all(numbers)

    def close(self) -> None:
        self._call.close()


class _Batches:
    """Tasks of a pool that are handed over in batches of `size`.

    Waking up for each ended task would cost CPU time. A thread takes its number
    together with its task, so no queued task sends a request after the deadline.
    """

    def __init__(
        self, size: int, numbers: RequestNumbers, faults: Sequence[BaseException]
    ) -> None:
        self._size = size
        self._numbers = numbers
        self._faults = faults
        self._count = itertools.count(1).__next__
        self._ended = queue.SimpleQueue[None]()

    def end_one(self) -> None:
        if self._count() % self._size == 0:
            self._ended.put(None)

    def keep_ahead(self, hand_over: Callable[[], None]) -> None:
        """Hand over tasks until the deadline or the first fault.

        Return when all of them have ended.
        """
        left = TASKS_AHEAD
        for _ in range(left * self._size):
            hand_over()
        while left:
            self._ended.get()
            if self._numbers.over or self._faults:
                left -= 1
                continue
            for _ in range(self._size):
                hand_over()


@ExecutorSpec("threads", threads=True, size="max_workers")
class Threads(Serial):
    """Threads, one per request in flight, each taking the next request.

    They take requests as the tasks of `workers` do. The pool keeps them alive between
    two runs, and hands over no request.
    """

    def open(self) -> None:
        super().open()
        self._pool = ThreadPoolExecutor(self._context.concurrency)

    def run(self, numbers: RequestNumbers) -> None:
        threads = range(self._context.concurrency)
        sending = [self._pool.submit(self._call.send_all, numbers) for _ in threads]
        for ended in wait(sending, return_when=FIRST_EXCEPTION).done:
            ended.result()

    def close(self) -> None:
        self._pool.shutdown()
        super().close()


@ExecutorSpec("thread-pool", threads=True, size="max_workers")
class ThreadPool(Threads):
    """ThreadPoolExecutor.map, one thread per request in flight.

    Each request is a future. With a duration, only a few are queued ahead.
    """

    def run(self, numbers: RequestNumbers) -> None:
        if numbers.count is not None:
            deque(self._pool.map(self._call, numbers), maxlen=0)
        elif isinstance(numbers, PacedNumbers):
            super().run(numbers)
        else:
            self._run_until_over(numbers)

    def _run_until_over(self, numbers: RequestNumbers) -> None:
        faults = list[BaseException]()
        batches = _Batches(self._context.concurrency, numbers, faults)

        def end(task: Future[None]) -> None:
            fault = task.exception()
            if fault is not None:
                faults.append(fault)
            batches.end_one()

        def submit() -> None:
            task = self._pool.submit(self._call.send_all, islice(numbers, 1))
            task.add_done_callback(end)

        batches.keep_ahead(submit)
        if faults:
            raise faults[0]


@ExecutorSpec("queue", threads=True, size="threads")
class ThreadQueue(Serial):
    """Worker threads on a queue.Queue, one per request in flight.

    Each request is an item of the queue. With a duration, only a few are queued ahead.
    """

    def open(self) -> None:
        super().open()
        self._queue = queue.Queue[Iterable[int] | None]()
        self._batches: _Batches | None = None
        self._faults: list[Exception] = []
        self._threads = [
            threading.Thread(target=self._work)
            for _ in range(self._context.concurrency)
        ]
        for thread in self._threads:
            thread.start()

    def run(self, numbers: RequestNumbers) -> None:
        if isinstance(numbers, PacedNumbers):
            for _ in self._threads:
                self._queue.put(numbers)
        elif numbers.count is not None:
            for number in numbers:
                self._queue.put((number,))
        else:
            self._batches = _Batches(self._context.concurrency, numbers, self._faults)
            self._batches.keep_ahead(lambda: self._queue.put(islice(numbers, 1)))
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


@ExecutorSpec(
    "futures",
    needs_count=True,
    threads=True,
    size="max_workers",
    only=("requests-session",),
    distribution="requests-futures",
)
class Futures(Executor):
    """requests-futures' FuturesSession over all requests at once, one worker thread per
    request in flight.
    """

    @classmethod
    def import_library(cls) -> None:
        importlib.import_module("requests_futures.sessions")

    def open(self) -> None:
        # The other executors do not need it.
        from requests_futures.sessions import FuturesSession  # noqa: PLC0415

        workers = self._context.concurrency
        self._call = self._context.open(workers)
        self._session = FuturesSession(
            max_workers=workers, session=_RecordingSession(self._call)
        )

    def run(self, numbers: RequestNumbers) -> None:
        futures = [self._session.request(number) for number in numbers]
        wait(futures)
        for future in futures:
            future.result()

    def close(self) -> None:
        self._session.close()
        self._call.close()


class _RecordingSession:
    """A stand-in for `requests.Session` that sends a request by its number."""

    def __init__(self, call: Caller) -> None:
        self.request = call
        self._client = call.client

    def get_adapter(self, url: str) -> Any:
        """Return the session's adapter if FuturesSession may size its pool.

        It does that above ten workers.
        """
        if self._client.library_defaults:
            return self._client.session.get_adapter(url)
        return None
