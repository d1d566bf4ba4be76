"""A testbed behind an emulated link: the same servers, whose addresses are those of the link's process."""

from __future__ import annotations

import contextlib
import json
import os
import re
import selectors
import subprocess
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Protocol, Self

import psutil

from clientlab import child_processes
from clientlab.errors import IncompleteRun, LabError, ServerLost
from clientlab.link.relay import HostPort
from clientlab.measuring import usage
from clientlab.measuring.connections import PeerAddress
from clientlab.results.document import Placement
from clientlab.results.plan import Plan
from clientlab.results.server_counters import OF_LINK, ServerCounters, ServerUse
from clientlab.running.testbed import Testbed
from clientlab.testbeds.server_process import LOOPBACK
from clientlab.workload.link import Link
from clientlab.workload.workload import Workload

_START_SECONDS = 30.0
_STOP_SECONDS = 2.0

_MALLOC = {"MALLOC_TRIM_THRESHOLD_": str(256 * 2**20), "MALLOC_MMAP_THRESHOLD_": str(32 * 2**20)}
"""Make glibc use freed memory again, since getting new pages takes longer than copying the bytes of a read.

With the defaults, a body of 10 MB on a kept connection arrived 3.5 to 6.3 ms late at 100 ms, instead of 0.3 to 1.4 ms.
"""


class LinkProcess:
    """A link before some servers, as a context manager. `targets`: host and port of each server.

    Its log is in `log_folder`. `cpus`: the only ones that it may use; without any, all. Raises LabError if it does not
    start.
    """

    def __init__(self, link: Link, targets: Iterable[HostPort], log_folder: Path, cpus: Collection[int] = ()) -> None:
        self._name = f"link of {link}"
        self._link = link
        self._targets = list(dict.fromkeys(targets))
        self._log = log_folder / f"link-{re.sub(r'[^A-Za-z0-9.]+', '-', str(link))}.log"
        self._cpus = cpus
        self._ports: list[int] = []
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self._start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._stop(_STOP_SECONDS)

    @property
    def pid(self) -> int:
        """The process id, which a restart changes."""
        return self._running().pid

    def port_of(self, target: HostPort) -> int:
        """The port of 127.0.0.1 that leads to this target. It stays the same after a restart."""
        return self._ports[self._targets.index(target)]

    def use(self) -> ServerUse | None:
        """CPU time, and what the process counts if the bandwidth is limited. Raises ServerLost."""
        process = self._running()
        found = _use(process.pid)
        if found is None or self._link.bandwidth is None:
            return found
        assert process.stdin is not None  # noqa: S101 - it is a pipe
        with contextlib.suppress(OSError):  # it has ended, which the missing answer shows
            process.stdin.write(b"\n")
            process.stdin.flush()
        if not (line := self._line(process)):
            raise ServerLost(f"{self._name} does not tell what it counted (log: {self._log})")
        counted = json.loads(line)
        return found.model_copy(update={name: counted[name] for name in OF_LINK})

    def check(self) -> None:
        """Raises ServerLost if the process has ended, or if it is stopped, as by SIGSTOP."""
        process = self._running()
        if process.poll() is not None:
            raise ServerLost(f"{self._name} {child_processes.how_it_ended(process, self._log)} (log: {self._log})")
        if child_processes.stopped(process.pid):
            raise ServerLost(f"{self._name} is frozen: its process {process.pid} is stopped (log: {self._log})")

    def restart(self) -> None:
        """Start it again on the same ports. Raises IncompleteRun if that fails."""
        self._stop(0)
        try:
            self._start()
        except LabError as error:
            raise IncompleteRun(f"{self._name} had to be started again: {error}") from error

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise AssertionError("the link is started by `with`")
        return self._process

    def _start(self) -> None:
        command = child_processes.python("clientlab.link", "--rtt", f"{self._link.rtt:.9f}")
        if self._link.bandwidth is not None:
            command += ["--bandwidth", f"{self._link.bandwidth:.3f}bit"]
        for host, port in self._targets:
            command += ["--forward", f"[{host}]:{port}" if ":" in host else f"{host}:{port}"]
        for port in self._ports:
            command += ["--listen", f"{LOOPBACK}:{port}"]
        self._process = child_processes.start(
            command,
            self._log,
            {**os.environ, **_MALLOC},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cpus=self._cpus,
        )
        try:
            self._ports = json.loads(self._first_line(self._process))["ports"]
        except BaseException:
            self._stop(0)
            raise

    def _first_line(self, process: subprocess.Popen[bytes]) -> bytes:
        """What the process prints when it accepts connections. Raises LabError."""
        line = self._line(process)
        if line is None:
            raise LabError(f"{self._name} did not answer within {_START_SECONDS:g} s (log: {self._log})")
        if not line:
            how = child_processes.how_it_ended(process, self._log)
            raise LabError(f"{self._name} did not start: it {how} (log: {self._log})")
        return line

    @staticmethod
    def _line(process: subprocess.Popen[bytes]) -> bytes | None:
        """The next line that the process prints; empty if it has ended, None if it prints none for long."""
        assert process.stdout is not None  # noqa: S101 - it is a pipe
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            return process.stdout.readline() if selector.select(_START_SECONDS) else None

    def _stop(self, patience: float) -> None:
        if self._process is None:
            return
        child_processes.stop(self._process, patience)
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        self._process = None


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

    def __exit__(self, *_error: object) -> None:
        self._process.__exit__()

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
        return self._testbed.reading(upstream, route).model_copy(update={"link": self._process.use()})

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
