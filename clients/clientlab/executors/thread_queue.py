"""Worker threads on a queue of all the requests, as many as there may be in flight."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterable

from clientlab.executors.shape import Bench, Numbers


class ThreadQueue:
    """Threads that take the next number from a `queue.Queue`; without a count, each draws its next."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench

    def open(self) -> None:
        self._call = self._bench.open(self._bench.concurrency)
        self._queue = queue.Queue[Iterable[int] | None]()
        self._faults: list[Exception] = []
        self._threads = [threading.Thread(target=self._work) for _ in range(self._bench.concurrency)]
        for thread in self._threads:
            thread.start()

    def run(self, numbers: Numbers) -> None:
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
                self._call.drain(numbers)
            except Exception as error:  # noqa: BLE001 - raised where `run` is called
                self._faults.append(error)
            finally:
                self._queue.task_done()
