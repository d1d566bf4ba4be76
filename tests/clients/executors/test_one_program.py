"""An executor hands requests over in the same way with a duration as with a number of
requests.
"""

from __future__ import annotations

import multiprocessing
import threading
import time
from dataclasses import dataclass, field

import pytest

from clientlab import strategies
from clientlab.errors import PluginError
from clientlab.executors.executor_interface import (
    Executor,
    ExecutorContext,
    RequestNumbers,
)

pytestmark = pytest.mark.real

CONCURRENCY = 3
SECONDS = 0.3


@dataclass
class NotedCaller:
    """A caller whose requests take 2 ms.

    It notes each number with its start, and the size of each hand-over.
    """

    sent: list[tuple[int, float]]
    sizes: list[int]
    client: object = None

    def __call__(self, number: int) -> None:
        self.send_all((number,))

    def send_all(self, numbers) -> None:
        size = 0
        for number in numbers:
            self.sent.append((number, time.perf_counter()))
            time.sleep(0.002)
            size += 1
        self.sizes.append(size)

    def close(self) -> None: ...


@dataclass
class NotingContext(ExecutorContext):
    """The context of a trial. The lists may belong to another process."""

    sent: list[tuple[int, float]] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    concurrency: int = CONCURRENCY
    warm: bool = False
    schedule: None = None

    def open(self, connections: int) -> NotedCaller:  # noqa: ARG002
        return NotedCaller(self.sent, self.sizes)


@pytest.fixture
def context():
    """A context whose notes all processes share."""
    with multiprocessing.Manager() as manager:
        yield NotingContext(manager.list(), manager.list())


def open_executor(name: str, context: ExecutorContext) -> Executor:
    made = strategies.load(strategies.executor_spec(name).import_path)(context)
    made.open()
    return made


def run(executor: str, context: NotingContext, numbers: RequestNumbers) -> None:
    made = open_executor(executor, context)
    made.run(numbers)
    made.close()


@pytest.mark.parametrize(
    "executor", ["thread-pool", "queue", "processes", "process-chunks", "gevent"]
)
def test_requests_are_handed_over_alone_until_the_duration_is_over(executor, context):
    """A future, an item in a queue, a message to a process or a greenlet per request
    then costs the same.

    Queued requests are not sent after the deadline. A pool that is ready too late sends
    the least number.
    """
    if not (in_chunks := executor == "process-chunks"):
        run(executor, context, RequestNumbers(12))
        assert [*context.sizes] == [1] * 12
        context.sent[:] = context.sizes[:] = []
    numbers = RequestNumbers(None, time.perf_counter() + SECONDS)
    run(executor, context, numbers)
    found = sorted(number for number, _ in context.sent)
    assert sum(context.sizes) == len(found) > 2 * CONCURRENCY
    assert in_chunks or (max(context.sizes), found) == (1, list(range(len(found))))
    assert sum(start >= numbers.deadline for _, start in context.sent) <= CONCURRENCY
    assert not numbers.extended
    context.sent[:] = []
    late = RequestNumbers(None, time.perf_counter() - 1, least=CONCURRENCY)
    run(executor, context, late)
    assert sorted(number for number, _ in context.sent) == list(range(CONCURRENCY))
    assert late.extended


def test_threads_take_the_next_request_themselves_and_live_on_between_runs():
    """As the tasks of `workers` do: handing over each request would cost more than some
    clients need to send it.
    """
    context = NotingContext()
    before = set(threading.enumerate())
    threads = open_executor("threads", context)
    threads.run(RequestNumbers(30))
    alive = set(threading.enumerate()) - before
    threads.run(RequestNumbers(None, time.perf_counter() + 0.1, first=30))
    assert alive
    assert alive <= set(threading.enumerate())
    assert len(context.sizes) == 2 * CONCURRENCY
    assert sorted(number for number, _ in context.sent) == list(
        range(sum(context.sizes))
    )
    threads.close()
    assert set(threading.enumerate()) == before


class FaultyCaller(NotedCaller):
    """A caller whose client is wrong, as a plug-in may be, for one of the first
    requests.
    """

    def send_all(self, numbers) -> None:
        super().send_all(map(self.check, numbers))

    def check(self, number: int) -> int:
        if number == CONCURRENCY - 1:
            raise PluginError("no response")
        return number


class FaultyContext(NotingContext):
    """The context of a trial with such a client."""

    def open(self, connections: int) -> NotedCaller:  # noqa: ARG002
        return FaultyCaller(self.sent, self.sizes)


@pytest.mark.parametrize("executor", ["threads", "thread-pool", "queue"])
def test_a_fault_in_one_thread_ends_the_run_at_once(executor):
    numbers = RequestNumbers(None, time.perf_counter() + 20)
    made = open_executor(executor, FaultyContext())
    with pytest.raises(PluginError, match="no response"):
        made.run(numbers)
    assert time.perf_counter() < numbers.deadline
    numbers.deadline = None  # the other threads end
    made.close()
