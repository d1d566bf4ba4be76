"""The interface of an executor, and of the objects that it works with.

An executor decides who sends when, and nothing else. It gets an `ExecutorContext`, from which each process opens a
caller, and the numbers of the requests to send. A caller sends request k of the workload with the strategy's client and
records it. The caller owns the clock, never the executor.
"""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from clientlab.external_tool import ToolReport
from clientlab.workload.arrivals import Arrivals
from clientlab.workload.workload import Request

if TYPE_CHECKING:
    import asyncio  # it imports ssl, which gevent has to patch first


LOOP = "asyncio"
"""The default event loop, that of asyncio. `measuring.connections.factory` makes all of them."""


class Caller(Protocol):
    """Sends requests by number, reads whole responses, records them. Never raises for a failed request."""

    @property
    def client(self) -> Any:
        """The strategy's client, opened."""

    def __call__(self, number: int) -> None:
        """Send one request."""

    def send_all(self, numbers: Iterable[int]) -> None:
        """Send all these requests one after the other; cheaper than one call per request."""

    def close(self) -> None:
        """Close the client and finish the records of this process."""


class AsyncCaller(Protocol):
    """`Caller` for asyncio."""

    async def __call__(self, number: int) -> None: ...

    async def send_all(self, numbers: Iterable[int]) -> None: ...

    async def close(self) -> None: ...


class Record(Protocol):
    """For an executor that drives its client itself: it reports when a request begins and how it ended."""

    @property
    def client(self) -> Any: ...

    def admits(self, number: int) -> bool:
        """Return whether to send a request of an open load. If not, it is too late, and was recorded as dropped."""

    def begin(self, number: int) -> Request:
        """Return request `number`, to be sent at once: its clock runs."""

    def finish(self, number: int, status: int, body: bytes) -> None:
        """Record that the whole response was read."""

    def fail(self, number: int, error: Exception) -> None:
        """Record the kind of an error."""

    def close(self) -> None: ...


class ToolCaller(Protocol):
    """For an executor that runs an external program: the request to send, and the log for the program's figures."""

    folder: Path
    request: Request

    @property
    def client(self) -> Any: ...

    def finish(self, began: float, report: ToolReport) -> None:
        """Record the report of a program that was started at `began` (`time.perf_counter`) and has ended."""

    def close(self) -> None: ...


class ExecutorContext(Protocol):
    """What a trial gives its executor. It can be pickled and sent to another process."""

    @property
    def concurrency(self) -> int:
        """The most requests in flight at once, over all processes."""

    @property
    def warm(self) -> bool:
        """Whether connections are opened before the clock starts. Then each worker has to send in the warm-up."""

    @property
    def schedule(self) -> Arrivals | None:
        """The planned starts of an open load; None for a closed load. `run` gets them as `pacing.PacedNumbers`."""

    def open(self, connections: int) -> Caller:
        """Open a caller in this process, whose client may hold so many connections."""

    async def aopen(self, connections: int) -> AsyncCaller:
        """Open a caller for an asyncio client in the running event loop."""

    def record(self, connections: int) -> Record:
        """Open a record for an executor that drives the client itself."""

    def drive(self) -> ToolCaller:
        """Open the recorder for an executor that runs an external program."""

    def loop_factory(self, name: str) -> Callable[[], asyncio.AbstractEventLoop]:
        """Return the factory of an event loop, asyncio or uvloop."""


class SharedRange:
    """An iterator of a range with step 1, for threads without a GIL.

    There, the iterator of a range may give two threads one number. `itertools.count` does not, from Python 3.13 on.
    """

    def __init__(self, numbers: range) -> None:
        self._take = itertools.count(numbers.start).__next__
        self._end = numbers.stop

    def __iter__(self) -> Iterator[int]:
        return self

    def __next__(self) -> int:
        number = self._take()
        if number >= self._end:
            raise StopIteration
        return number


class RequestNumbers:
    """The numbers of the requests to send: `count` of them, or as many as begin before `deadline`.

    Several threads or tasks may share this iterator. `deadline` is in seconds of `time.perf_counter`, a clock that all
    processes of a machine share. `first`: the lowest number. Without a count, `step` divides the numbers among
    processes, and `least` requests begin even after the deadline, because a pool of processes may be ready only then on
    a busy machine; `extended` becomes true. `over`: the deadline has ended the numbers.
    """

    def __init__(
        self, count: int | None, deadline: float | None = None, first: int = 0, step: int = 1, *, least: int = 0
    ) -> None:
        self.count = count
        self.deadline = deadline
        self.first = first
        self.least = least
        self.extended = False
        self.over = False
        self._counted: Iterator[int] | None = None
        if count is not None:
            numbers = range(first, first + count)
            self._counted = SharedRange(numbers) if "t" in sys.abiflags else iter(numbers)  # "t": free threading
        self._next = itertools.count(first, step).__next__
        self._enough = first + least * step

    def __iter__(self) -> Iterator[int]:
        return self if self._counted is None else self._counted

    def __next__(self) -> int:
        if self.deadline is None or time.perf_counter() >= self.deadline:
            return self._late()
        return self._next()

    def _late(self) -> int:
        """Return the next number after the deadline, until `least` numbers are taken."""
        number = self._next()
        if number >= self._enough:
            self.over = True
            raise StopIteration
        self.extended = True
        return number


TASKS_AHEAD = 3
"""Of a closed load with a duration: tasks that run or wait in the queue of a pool, for each request in flight.

With a number of requests, all are queued at once. With a duration, at least as many wait as run: no thread is idle.
"""


class Executor(Protocol):
    """One concurrency model. Its settings are keyword arguments of `__init__`.

    `open`, `run` and `close` are called in this order, with warm connections `run` twice. An optional class method
    `prepare` is called before the client's library is imported.
    """

    def __init__(self, context: ExecutorContext) -> None: ...

    def open(self) -> None:
        """Make pools, event loops and callers, as a program does before its first request."""

    def run(self, numbers: RequestNumbers) -> None:
        """Send every number once. Return when all responses are read."""

    def close(self) -> None:
        """Close what `open` made. Leaves no thread and no process."""
