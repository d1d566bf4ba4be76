"""The shape of an executor, and what it is handed.

An executor decides who sends when, and nothing else: it gets `Numbers` (which requests) and a
`Bench`, from which each process opens a caller. A caller sends request k of the workload with the
strategy's client and records it; the clock is the caller's, never the executor's.

`open`, `run` and `close` are called in this order, `run` more than once where connections are warm.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from clientlab.tally import Tally
from clientlab.workload import Request

if TYPE_CHECKING:
    import asyncio  # not for all: it imports ssl, which gevent has to patch before

LOOP = "asyncio"
"""The event loop where a strategy names none: Python's own. The other is ``uvloop``."""


class Caller(Protocol):
    """Sends requests by number, reads the whole answers, records them. Never raises for a failed one."""

    @property
    def client(self) -> Any:
        """The strategy's client, opened."""

    def __call__(self, number: int) -> None:
        """One request."""

    def drain(self, numbers: Iterable[int]) -> None:
        """One after the other until there are no more; cheaper than a call for each."""

    def close(self) -> None:
        """Close the client and finish this process's records."""


class AsyncCaller(Protocol):
    """The same for asyncio."""

    async def __call__(self, number: int) -> None: ...

    async def drain(self, numbers: Iterable[int]) -> None: ...

    async def close(self) -> None: ...


class Record(Protocol):
    """For an executor that drives its client itself: it tells when a request begins, and how it ended."""

    @property
    def client(self) -> Any:
        """The strategy's client, opened."""

    def begin(self, number: int) -> Request:
        """The request of that number, to be sent at once: its time runs."""

    def finish(self, number: int, status: int, body: bytes) -> None:
        """Its whole answer was read."""

    def fail(self, number: int, error: Exception) -> None:
        """It had none; the error's kind is recorded."""

    def close(self) -> None:
        """Close the client and finish this process's records."""


class Driven(Protocol):
    """For an executor whose client is a program: what it is to send, and the log for what it found."""

    folder: Path
    request: Request

    @property
    def client(self) -> Any:
        """The strategy's client."""

    def finish(self, began: float, tally: Tally) -> None:
        """It was started at `began` (`time.perf_counter`), and has ended."""

    def close(self) -> None:
        """Finish this process's records."""


class Bench(Protocol):
    """What a trial gives its executor; can be sent to another process."""

    @property
    def concurrency(self) -> int:
        """How many requests may be in flight at once, over all processes."""

    @property
    def warm(self) -> bool:
        """Whether connections are opened before the clock starts: then each worker is to send in the warm-up."""

    def open(self, connections: int) -> Caller:
        """A caller in this process, whose client may hold that many connections."""

    def record(self, connections: int) -> Record:
        """The same for an executor that sends with the client in a way of its own."""

    def drive(self) -> Driven:
        """The same for an executor whose client is a program."""

    def loop_factory(self, name: str) -> Callable[[], asyncio.AbstractEventLoop]:
        """Makes event loops: ``asyncio`` or ``uvloop``."""

    async def aopen(self, connections: int) -> AsyncCaller:
        """The same for a client of asyncio, in the running loop."""


class Numbers:
    """The numbers of the requests to send: `count` of them, or as many as can begin before `deadline`.

    An iterator that several threads or tasks may share. `deadline` is in seconds of `time.perf_counter`,
    which all processes of a machine share. `first` and `step` divide the endless case among processes.
    """

    def __init__(self, count: int | None, deadline: float | None = None, first: int = 0, step: int = 1) -> None:
        self.count = count
        self.deadline = deadline
        self._counted = None if count is None else iter(range(first, first + count))
        self._next = itertools.count(first, step).__next__

    def __iter__(self) -> Iterator[int]:
        return self if self._counted is None else self._counted

    def __next__(self) -> int:
        if self.deadline is None or time.perf_counter() >= self.deadline:
            raise StopIteration
        return self._next()


class Executor(Protocol):
    """One way of running many requests. Settings of its own are keyword arguments of `__init__`.

    A class method `prepare`, where it has one, is called before the client's library is imported.
    """

    def __init__(self, bench: Bench) -> None: ...

    def open(self) -> None:
        """Make pools, loops and callers, as a program would before its first request."""

    def run(self, numbers: Numbers) -> None:
        """Send every number once; return when all answers are read."""

    def close(self) -> None:
        """Close what `open` made; leaves no thread and no process."""
