"""The interface of an executor, its entry, and the objects that it works with.

An executor decides who sends when, and nothing else. It gets an `ExecutorContext`, from
which each process opens a caller, and the numbers of the requests to send. A caller
sends request k of the workload with the strategy's client and records it. The caller
owns the clock, never the executor.
"""

from __future__ import annotations

import itertools
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from clientlab.clients.client_interface import EXTRA, ClientKind, ClientSpec, Policy
from clientlab.workload.load import Arrivals
from clientlab.workload.workload import Request, ToolReport

if TYPE_CHECKING:
    import asyncio  # it imports ssl, which gevent has to patch first

LOOP = "asyncio"  # the default event loop
TASKS_AHEAD = 3
"""Tasks in a pool per request in flight if a closed load has a duration.

More wait than run, so no thread is idle.
"""

_Class = TypeVar("_Class", bound=type)


@dataclass(frozen=True)
class ExecutorSpec:
    """One way to run many requests: the decorator that registers an executor's class.

    `strategies` reads these entries from the source, and fills in `import_path` and
    `description`.
    """

    name: str
    needs: ClientKind = "blocking"  # the kind of client that it runs
    _: KW_ONLY
    needs_count: bool = False  # starts all at once, so their number must be known
    concurrent: bool = True  # has more than one request in flight
    unbounded: bool = False  # has all requests in flight, regardless of the concurrency
    pool_bound: bool = False  # only the client's pool limits the requests in flight
    threads: bool = False  # each request in flight has a thread
    clock_first: bool = False  # a request's clock starts before a connection is free
    size: str = ""  # the setting that replaces ``-c`` for its strategies
    only: tuple[str, ...] = ()  # the clients that it runs; empty: all of its kind
    policy: Policy | None = None  # of connections; None: the client's
    # Sends with the client's handles: whole bodies, timed by the lab only.
    drives_client: bool = False
    distribution: str = "python"  # needed, and the run file stores its version
    extra: str = EXTRA  # the extra of pyproject.toml that installs it
    import_path: str = ""  # module:Class
    description: str = ""

    def __call__(self, cls: _Class) -> _Class:
        return cls

    def runs(self, client: ClientSpec) -> bool:
        """Return whether the two make a strategy."""
        return (
            client.kind == self.needs
            and (not self.only or client.name in self.only)
            and (not client.only or self.name in client.only)
        )


class Executor(ABC):
    """One concurrency model. Its settings are keyword arguments of `__init__`.

    `open`, `run` and `close` are called in this order, with warm connections `run`
    twice. Two class methods are optional: `import_library` imports what the module does
    not, and `prepare` is called before the client's library is imported. The method
    `preload` is optional too: it is called before the warm-up of a cold trial, and
    imports what processes would import inside the clock. A user's executor need not
    inherit.
    """

    def __init__(self, context: ExecutorContext) -> None:
        self._context = context

    @abstractmethod
    def open(self) -> None:
        """Make pools, loops and callers, as a program does before its first request."""

    @abstractmethod
    def run(self, numbers: RequestNumbers) -> None:
        """Send every number once. Return when all responses are read."""

    @abstractmethod
    def close(self) -> None:
        """Close what `open` made. Leaves no thread and no process."""


class Caller(Protocol):
    """Sends requests by number, reads whole responses, records them.

    Never raises for a failed request.
    """

    client: Any  # the strategy's client, opened

    def __call__(self, number: int) -> None: ...

    def send_all(self, numbers: Iterable[int]) -> None:
        """Send these requests one after the other: cheaper than a call for each."""

    def close(self) -> None:
        """Close the client and finish the records of this process."""


class AsyncCaller(Protocol):
    """`Caller` for asyncio."""

    async def __call__(self, number: int) -> None: ...
    async def send_all(self, numbers: Iterable[int]) -> None: ...
    async def close(self) -> None: ...


class Record(Protocol):
    """Records requests of an executor that drives its client itself.

    The executor reports when a request begins and how it ended.
    """

    client: Any

    def admits(self, number: int) -> bool:
        """Return whether to send a request of an open load.

        If not, it is too late, and was recorded as dropped.
        """

    def begin(self, number: int) -> Request:
        """Return a request, to be sent at once: its clock runs."""

    def finish(self, number: int, status: int, body: bytes) -> None:
        """Record that the whole response was read."""

    def fail(self, number: int, error: Exception) -> None: ...
    def close(self) -> None: ...


class ToolCaller(Protocol):
    """The request to send with an external program, and the log for its figures."""

    client: Any
    folder: Path
    request: Request

    def finish(self, began: float, report: ToolReport) -> None:
        """Record the report of a program that has ended.

        `began`: when it was started (`time.perf_counter`).
        """

    def close(self) -> None: ...


class ExecutorContext(Protocol):
    """What a trial gives its executor.

    It can be pickled and sent to another process.
    """

    concurrency: int  # the most requests in flight at once, over all processes
    # Connections are opened before the clock starts: each worker has to send in the
    # warm-up.
    warm: bool
    # The planned starts of an open load, which `run` gets as `pacing.PacedNumbers`.
    schedule: Arrivals | None

    def open(self, connections: int) -> Caller:
        """Open a caller, whose client may hold this many connections."""

    async def aopen(self, connections: int) -> AsyncCaller:
        """Open a caller for an asyncio client in the running event loop."""

    def record(self, connections: int) -> Record:
        """Open a record for an executor that drives the client itself."""

    def drive(self) -> ToolCaller:
        """Open the recorder for an executor that runs an external program."""

    def loop_factory(self, name: str) -> Callable[[], asyncio.AbstractEventLoop]:
        """Return the factory of an event loop, asyncio or uvloop."""


class RequestNumbers:
    """The numbers of the requests to send: `count` of them, or those until `deadline`.

    Several threads or tasks may share this iterator. `first` and `step` divide the
    numbers among processes or threads. `deadline` is in seconds of `time.perf_counter`,
    a clock that all processes of a machine share.

    On a busy machine, a pool of processes may be ready only after the deadline. Then,
    `least` requests begin nevertheless, and `extended` becomes true. `over` becomes
    true when the deadline has ended the numbers.

    With a deadline and `slots` in flight, `on_steady` is called twice: with the number
    of the request that begins when the first wave has ended, and with the first number
    that the deadline refuses.
    """

    def __init__(  # noqa: PLR0913 - with a wave's size and its callback
        self,
        count: int | None,
        deadline: float | None = None,
        first: int = 0,
        step: int = 1,
        *,
        least: int = 0,
        slots: int = 0,
        on_steady: Callable[[int], object] = lambda _number: None,
    ) -> None:
        self.count = count
        self.deadline = deadline
        self.first = first
        self.least = least
        self.extended = False
        self.over = False
        self._next = itertools.count(first, step).__next__
        self._enough = first + (least if count is None else count) * step
        self._on_steady = on_steady
        # One wave fills the slots. When as many requests have ended, a second one has
        # begun.
        self._steady_from = first + 2 * slots if slots else None
        self._counted: Iterator[int] | None = None
        # Without a GIL, a range's iterator may give two threads one number.
        # `itertools.count` does not, since 3.13.
        if count is not None and "t" not in sys.abiflags:
            self._counted = iter(range(first, self._enough, step))

    def __iter__(self) -> Iterator[int]:
        return self if self._counted is None else self._counted

    def __next__(self) -> int:
        number = self._next()
        if self.deadline is not None and time.perf_counter() < self.deadline:
            if number == self._steady_from:
                self._on_steady(number)
            return number
        if number >= self._enough:
            if not self.over:
                self.over = True
                self._on_steady(number)
            raise StopIteration
        self.extended = True
        return number
