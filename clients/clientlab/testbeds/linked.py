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

from clientlab import child_processes
from clientlab.errors import IncompleteRun, LabError, ServerLost
from clientlab.link.relay import HostPort
from clientlab.measuring import usage
from clientlab.measuring.connections import PeerAddress
from clientlab.measuring.trial_handle import OWN
from clientlab.results.server_counters import OF_LINK, ServerCounters, ServerUse
from clientlab.running.testbed import Testbed
from clientlab.testbeds.server_process import LOOPBACK
from clientlab.workload.link import Link
from clientlab.workload.workload import Workload

_ANSWER_SECONDS = 30.0
_STOP_SECONDS = 2.0

_MALLOC = {"MALLOC_TRIM_THRESHOLD_": str(256 * 2**20), "MALLOC_MMAP_THRESHOLD_": str(32 * 2**20)}
"""Make glibc use freed memory again, since getting new pages takes longer than copying the bytes of a read.

With the defaults, a body of 10 MB on a kept connection arrived 3.5 to 6.3 ms late at 100 ms, instead of 0.3 to 1.4 ms.
"""


class LinkProcess:
    """A link before some servers, as a context manager. `targets`: host and port of each server.

    Its log is in `log_folder`. `cpus`: those that it may use; empty means all. Raise LabError if it does not start.
    """

    def __init__(self, link: Link, targets: Iterable[HostPort], log_folder: Path, cpus: Collection[int] = ()) -> None:
        self._name = f"link of {link}"
        self._link = link
        self._targets = list(dict.fromkeys(targets))
        self._log = log_folder / f"link-{re.sub(r'[^A-Za-z0-9.]+', '-', str(link))}.log"
        self._cpus = cpus
        self._ports: list[int] = []
        self._process: subprocess.Popen[bytes]

    def __enter__(self) -> Self:
        self._log.parent.mkdir(parents=True, exist_ok=True)
        self._start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._stop(_STOP_SECONDS)

    @property
    def pid(self) -> int:
        """The process id, which a restart changes."""
        return self._process.pid

    def port_of(self, target: HostPort) -> int:
        """Return the port of 127.0.0.1 that leads to this target. It stays the same after a restart."""
        return self._ports[self._targets.index(target)]

    def use(self) -> ServerUse | None:
        """Return the CPU time of its only thread, and the bytes that a limited bandwidth carried. Raise ServerLost.

        Return None if the system has no clock of another process (macOS).
        """
        seconds = usage.cpu_seconds_of(self.pid)
        found = None if seconds is None else ServerUse(cpu_seconds=seconds, processes=1, cpu_step_seconds=0.0)
        if found is None or self._link.bandwidth is None:
            return found
        assert self._process.stdin is not None  # noqa: S101 - it is a pipe
        with contextlib.suppress(OSError):  # it has ended, which the missing answer shows
            self._process.stdin.write(b"\n")
            self._process.stdin.flush()
        if not (line := self._read_line()):
            raise ServerLost(f"{self._name} does not answer (log: {self._log})")
        counted = json.loads(line)
        return found.model_copy(update={name: counted[name] for name in OF_LINK})

    def check(self) -> None:
        """Raise ServerLost if the process has ended, or if it is stopped, as by SIGSTOP."""
        if self._process.poll() is not None:
            how = child_processes.how_it_ended(self._process, self._log)
            raise ServerLost(f"{self._name} {how} (log: {self._log})")
        if child_processes.stopped(self.pid):
            raise ServerLost(f"{self._name} is frozen: its process {self.pid} is stopped (log: {self._log})")

    def restart(self) -> None:
        """Start it again on the same ports. Raise IncompleteRun if that fails."""
        self._stop(0)
        try:
            self._start()
        except LabError as error:
            raise IncompleteRun(f"{self._name} had to be started again: {error}") from error

    def _start(self) -> None:
        command = OWN.command("clientlab.link", "--rtt", f"{self._link.rtt:.9f}")
        if self._link.bandwidth is not None:
            command += ["--bandwidth", f"{self._link.bandwidth:.3f}bit"]
        for host, port in self._targets:
            command += ["--forward", f"[{host}]:{port}" if ":" in host else f"{host}:{port}"]
        for port in self._ports:
            command += ["--listen", f"{LOOPBACK}:{port}"]
        pipe, environment = subprocess.PIPE, {**os.environ, **_MALLOC}
        self._process = child_processes.start(command, self._log, environment, stdin=pipe, stdout=pipe, cpus=self._cpus)
        with contextlib.ExitStack() as undo:
            undo.callback(self._stop, 0)
            if not (line := self._read_line()):
                child_processes.stop(self._process, _STOP_SECONDS)  # unless it has ended itself
                how = child_processes.how_it_ended(self._process, self._log)
                raise LabError(f"{self._name} did not start: it {how} (log: {self._log})")
            self._ports = json.loads(line)["ports"]
            undo.pop_all()

    def _read_line(self) -> bytes:
        """Return the next line that the process prints; empty if it has ended, or prints none for long."""
        assert self._process.stdout is not None  # noqa: S101 - it is a pipe
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            return self._process.stdout.readline() if selector.select(_ANSWER_SECONDS) else b""

    def _stop(self, patience: float) -> None:
        child_processes.stop(self._process, patience)
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()


class Linkable(Testbed, Protocol):
    """A testbed whose servers a link can lead to."""

    def targets(self) -> Iterable[HostPort]:
        """Return host and port of each server that clients call."""

    def behind_link(self, upstream: str, route: str, port_of: Callable[[HostPort], int]) -> tuple[str, PeerAddress]:
        """Return the base URL of an upstream behind a link, and which connections are connections to it.

        `port_of` returns the link's port on 127.0.0.1 that leads to a target.
        """


class LinkedTestbed:
    """A testbed seen through a link, as a context manager that starts and stops the link's process."""

    def __init__(self, testbed: Linkable, link: Link, logs: Path, cpus: Collection[int] = ()) -> None:
        self._testbed = testbed
        self._process = LinkProcess(link, testbed.targets(), logs, cpus)

    def __enter__(self) -> Self:
        self._process.__enter__()
        return self

    def __exit__(self, *_error: object) -> None:
        self._process.__exit__()

    def serve(self, upstream: str) -> None:
        """Start that upstream unless it is running, and the link again if it has ended or is frozen."""
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
        """Return the counters now. Raise ServerLost if a server or the link has ended."""
        self._process.check()
        return self._testbed.reading(upstream, route).model_copy(update={"link": self._process.use()})

    def check(self) -> None:
        """Raise ServerLost if a server or the link has ended, or is frozen."""
        self._process.check()
        self._testbed.check()

    def trouble(self, upstream: str, route: str, workload: Workload) -> str | None:
        """Return why a health check fails that does not pass through the link; None if it is answered."""
        return self._testbed.trouble(upstream, route, workload)
