"""requests-futures: a session whose requests are run by a pool of threads and answered by futures."""

from __future__ import annotations

from concurrent.futures import wait
from typing import Any

from requests_futures.sessions import FuturesSession

from clientlab.executors.shape import Bench, Caller, Numbers


class Futures:
    """`FuturesSession.request` for all at once; the wait in its pool's queue is off the clock.

    Its workers call the strategy's own session, recorded there.
    """

    def __init__(self, bench: Bench) -> None:
        self._bench = bench

    def open(self) -> None:
        workers = self._bench.concurrency
        self._call = self._bench.open(workers)
        self._session = FuturesSession(max_workers=workers, session=_Recorded(self._call))

    def run(self, numbers: Numbers) -> None:
        futures = [self._session.request(number) for number in numbers]
        wait(futures)
        for future in futures:
            future.result()

    def close(self) -> None:
        self._session.close()
        self._call.close()


class _Recorded:
    """What the workers take for a `requests.Session`: it sends by number, inside the clock."""

    def __init__(self, call: Caller) -> None:
        self.request = call
        self._client = call.client

    def get_adapter(self, url: str) -> Any:
        """The session's adapter, where FuturesSession may size its pool: by default it does, above ten workers."""
        return self._client.session.get_adapter(url) if self._client.library_defaults else None
