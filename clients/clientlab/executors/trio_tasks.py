"""trio in one thread, for asyncio clients whose library also runs on trio."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable
from typing import Any

import trio

from clientlab.executors.executor_interface import (
    AsyncCaller,
    Executor,
    ExecutorSpec,
    RequestNumbers,
)


@ExecutorSpec(
    "trio",
    "asyncio",
    size="tasks",
    distribution="trio",
    extra="more",
    # These run on asyncio and on trio.
    only=("httpx-async", "httpx-async-h2", "httpx2-async", "httpx2-async-h2"),
)
class TrioTasks(Executor):
    """trio tasks in a nursery, one per request in flight, each taking the next request.

    `trio.run` cannot be left and entered again, so trio has a thread from `open` to
    `close`. The main thread hands it one function per call and waits: no request
    crosses threads.
    """

    def open(self) -> None:
        self._running = threading.Event()
        self._thread = threading.Thread(
            target=trio.run, args=(self._serve,), daemon=True
        )
        self._thread.start()
        self._running.wait()
        self._call: AsyncCaller = self._call_in_trio(
            self._context.aopen, self._context.concurrency
        )

    def run(self, numbers: RequestNumbers) -> None:
        self._call_in_trio(self._send, numbers)

    def close(self) -> None:
        self._call_in_trio(self._call.close)
        trio.from_thread.run_sync(self._over.set, trio_token=self._token)
        self._thread.join()

    async def _serve(self) -> None:
        self._token = trio.lowlevel.current_trio_token()
        self._over = trio.Event()
        self._running.set()
        await self._over.wait()

    async def _send(self, numbers: RequestNumbers) -> None:
        async with trio.open_nursery() as nursery:
            for _ in range(self._context.concurrency):
                nursery.start_soon(self._call.send_all, numbers)

    def _call_in_trio(
        self, function: Callable[..., Awaitable[Any]], *arguments: Any
    ) -> Any:
        return trio.from_thread.run(function, *arguments, trio_token=self._token)
