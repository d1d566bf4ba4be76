"""Worker threads that share a queue of all requests, one thread per request in flight."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterable

from clientlab.executors.interfaces import ExecutorContext, RequestNumbers


class ThreadQueue:
    """Threads that take numbers from a `queue.Queue`. With a duration, each thread takes the next number itself."""

    def __init__(self, context: ExecutorContext) -> None:
        self._context = context

    def open(self) -> None:
        self._call = self._context.open(self._context.concurrency)
        self._queue = queue.Queue[Iterable[int] | None]()
        self._faults: list[Exception] = []
        self._threads = [threading.Thread(target=self._work) for _ in range(self._context.concurrency)]
        for thread in self._threads:
            thread.start()

    def run(self, numbers: RequestNumbers) -> None:
        if numbers.count is None:
            for _ in self._threads:
                self._queue.put(numbers)
        else:
            for number in numbers:
                self._queue.put((number,))
        self._queue.join()
        if self._faults:
            raise self._faults[0]

    def close(self) -> None:
        for _ in self._threads:
            self._queue.put(None)
        for thread in self._threads:
            thread.join()
        self._call.close()

    def _work(self) -> None:
        while (numbers := self._queue.get()) is not None:
            try:
                self._call.send_all(numbers)
            except Exception as error:  # noqa: BLE001 - `run` raises it
                self._faults.append(error)
            finally:
                self._queue.task_done()
