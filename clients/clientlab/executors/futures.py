"""requests-futures: a session that runs requests in a thread pool and returns futures."""

from __future__ import annotations

from concurrent.futures import wait
from typing import Any

from requests_futures.sessions import FuturesSession

from clientlab.executors.executor_interface import Caller, ExecutorContext, RequestNumbers


class Futures:
    """`FuturesSession.request` for all requests at once. The clock starts after the wait in the pool's queue.

    The workers call the session of the strategy, which records the requests.
    """

    def __init__(self, context: ExecutorContext) -> None:
        self._context = context

    def open(self) -> None:
        workers = self._context.concurrency
        self._call = self._context.open(workers)
        self._session = FuturesSession(max_workers=workers, session=_Recorded(self._call))

    def run(self, numbers: RequestNumbers) -> None:
        futures = [self._session.request(number) for number in numbers]
        wait(futures)
        for future in futures:
            future.result()

    def close(self) -> None:
        self._session.close()
        self._call.close()


class _Recorded:
    """A stand-in for `requests.Session` that sends a request by its number and records it."""

    def __init__(self, call: Caller) -> None:
        self.request = call
        self._client = call.client

    def get_adapter(self, url: str) -> Any:
        """Return the session's adapter if FuturesSession may size its pool, as it does above ten workers."""
        return self._client.session.get_adapter(url) if self._client.library_defaults else None
