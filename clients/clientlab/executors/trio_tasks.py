"""trio in one thread: tasks of a nursery send the requests. For asyncio clients whose library runs on trio too."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable
from typing import Any

import trio

from clientlab.executors.executor_interface import AsyncCaller, ExecutorContext, RequestNumbers


class TrioTasks:
    """One task per request in flight. Each task takes the next number.

    `trio.run` cannot be left and entered again, so trio has a thread from `open` to `close`. The main thread hands it
    one function for each of these calls and waits: no request crosses threads.
    """

    def __init__(self, context: ExecutorContext) -> None:
        self._context = context
        self._running = threading.Event()
        self._thread = threading.Thread(target=trio.run, args=(self._serve,), daemon=True)

    def open(self) -> None:
        self._thread.start()
        self._running.wait()
        self._call: AsyncCaller = self._do(self._context.aopen, self._context.concurrency)

    def run(self, numbers: RequestNumbers) -> None:
        self._do(self._send, numbers)

    def close(self) -> None:
        self._do(self._call.close)
        trio.from_thread.run_sync(self._over.set, trio_token=self._token)
        self._thread.join()

    async def _serve(self) -> None:
        """Live in trio's thread until `close`."""
        self._token, self._over = trio.lowlevel.current_trio_token(), trio.Event()
        self._running.set()
        await self._over.wait()

    async def _send(self, numbers: RequestNumbers) -> None:
        async with trio.open_nursery() as nursery:
            for _ in range(self._context.concurrency):
                nursery.start_soon(self._call.send_all, numbers)

    def _do(self, function: Callable[..., Awaitable[Any]], *arguments: Any) -> Any:
        return trio.from_thread.run(function, *arguments, trio_token=self._token)
