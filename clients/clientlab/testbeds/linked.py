"""A testbed behind an emulated link: the same servers, whose addresses for clients are those of the link's process."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

import psutil

from clientlab.errors import ServerLost
from clientlab.measuring import usage
from clientlab.measuring.connections import PeerAddress
from clientlab.results.document import Placement
from clientlab.results.plan import Plan
from clientlab.results.server_counters import ServerCounters, ServerUse
from clientlab.running.testbed import Testbed
from clientlab.testbeds.link_process import LinkProcess
from clientlab.workload.link import Link
from clientlab.workload.workload import Workload

_PSUTIL_STEP = 0.01


class Linkable(Testbed, Protocol):
    """A testbed whose servers a link can lead to."""

    def targets(self) -> Iterable[tuple[str, int]]:
        """Host and port of each server that clients call."""

    def behind_link(
        self, upstream: str, route: str, port_of: Callable[[tuple[str, int]], int]
    ) -> tuple[str, PeerAddress]:
        """Base URL of that upstream behind a link, and which connections are connections to it.

        `port_of`: a function from a target to the port of the link, on 127.0.0.1, that leads to it.
        """


class LinkedTestbed:
    """A testbed seen through a link, as a context manager that starts and stops the link's process.

    Raises LabError where the process does not start.
    """

    def __init__(self, testbed: Linkable, link: Link, logs: Path, placement: Placement | None = None) -> None:
        self._testbed = testbed
        cpus = () if placement is None else placement.upstream
        self._logs = logs
        self._process = LinkProcess(link, testbed.targets(), logs, cpus)

    def __enter__(self) -> Self:
        self._logs.mkdir(parents=True, exist_ok=True)
        self._process.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.__exit__(kind, error, trace)

    def serve(self, upstream: str) -> None:
        """Start that upstream unless it is running, and the link again if it has ended or is frozen.

        Raises as the testbed does, and IncompleteRun where the link does not start.
        """
        self._testbed.serve(upstream)
        try:
            self._process.check()
        except ServerLost:
            self._process.restart()

    def base_url(self, upstream: str, route: str) -> str:
        return self._testbed.behind_link(upstream, route, self._process.port_of)[0]

    def address(self, upstream: str, route: str) -> PeerAddress:
        return self._testbed.behind_link(upstream, route, self._process.port_of)[1]

    def ca_file(self, upstream: str, route: str) -> str | None:
        return self._testbed.ca_file(upstream, route)

    def reading(self, upstream: str, route: str) -> ServerCounters:
        """The counters now. Raises ServerLost where a server or the link has ended."""
        self._process.check()
        return self._testbed.reading(upstream, route).model_copy(update={"link": _use(self._process.pid)})

    def check(self) -> None:
        """Raises ServerLost where a server or the link has ended, or is frozen."""
        self._process.check()
        self._testbed.check()

    def trouble(self, upstream: str, route: str, workload: Workload) -> str | None:
        """Why a health check fails that does not pass through the link; None where it is answered."""
        return self._testbed.trouble(upstream, route, workload)


def linked(
    testbed: Linkable, plan: Plan, logs: Path, stack: contextlib.ExitStack, placement: Placement | None = None
) -> dict[Link, Testbed]:
    """The testbed behind each link of the plan, which `stack` stops. Raises LabError where a link does not start."""
    return {link: stack.enter_context(LinkedTestbed(testbed, link, logs, placement)) for link in plan.links}


def _use(pid: int) -> ServerUse | None:
    """The CPU time of the link's process, which has one thread; None where it has ended."""
    seconds = usage.cpu_seconds_of(pid)
    if seconds is not None:
        return ServerUse(cpu_seconds=seconds, processes=1, cpu_step_seconds=0.0)
    with contextlib.suppress(psutil.NoSuchProcess):
        times = psutil.Process(pid).cpu_times()
        return ServerUse(cpu_seconds=times.user + times.system, processes=1, cpu_step_seconds=_PSUTIL_STEP)
    return None
