"""A testbed behind an emulated link, whose process clients call."""

from __future__ import annotations

import contextlib
import json
import os
import re
import selectors
import subprocess
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from clientlab.errors import IncompleteRun, LabError, ServerLost
from clientlab.link.relay import HostPort
from clientlab.machine import child_processes, usage
from clientlab.observing.process_handle import OWN
from clientlab.results.server_counters import OF_LINK, ServerCounters, ServerUse
from clientlab.testbeds.external import ExternalServers
from clientlab.testbeds.local import LocalTestbed
from clientlab.testbeds.servers import LOOPBACK, FaultControl, check_process
from clientlab.trial.context import PeerAddress
from clientlab.workload.values import Link
from clientlab.workload.workload import Workload

_ANSWER_SECONDS = 30.0
_STOP_SECONDS = 2.0

_MALLOC = {
    "MALLOC_TRIM_THRESHOLD_": str(256 * 2**20),
    "MALLOC_MMAP_THRESHOLD_": str(32 * 2**20),
}
"""Make glibc reuse freed memory.

With its defaults, 10 MB arrived 3.5 to 6.3 ms late, instead of 0.3 to 1.4 ms.
"""


class LinkProcess:
    """A context manager that runs a link before `targets` (hosts and ports).

    `cpus`: empty means all.
    """

    def __init__(
        self,
        link: Link,
        targets: Iterable[HostPort],
        log_folder: Path,
        cpus: Collection[int] = (),
    ) -> None:
        self._name = f"link of {link}"
        self._link = link
        self._cpus = cpus
        self._targets = list(dict.fromkeys(targets))
        self._log = log_folder / f"link-{re.sub(r'[^A-Za-z0-9.]+', '-', str(link))}.log"
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
        """Return the port of 127.0.0.1 that leads to this target.

        It stays the same after a restart.
        """
        return self._ports[self._targets.index(target)]

    def read_use(self) -> ServerUse | None:
        """Return the CPU time of the link, and the bytes of a limited bandwidth.

        Return None on macOS. Raise ServerLost.
        """
        seconds = usage.cpu_seconds_of(self.pid)
        if seconds is None:
            return None
        use = ServerUse(cpu_seconds=seconds, processes=1, cpu_step_seconds=0.0)
        if self._link.bandwidth is None:
            return use
        assert self._process.stdin is not None  # noqa: S101 - it is a pipe
        with contextlib.suppress(OSError):  # if it has ended, the answer is missing
            self._process.stdin.write(b"\n")
            self._process.stdin.flush()
        line = self._read_line()
        if not line:
            # So that it is started again for the next trial.
            child_processes.stop(self._process, 0)
            raise ServerLost(f"{self._name} does not answer (log: {self._log})")
        counted = json.loads(line)
        return use.updated(**{name: counted[name] for name in OF_LINK})

    def check(self) -> None:
        """Raise ServerLost if the process has ended."""
        check_process(self._name, self._process, self._log)

    def restart(self) -> None:
        """Start it again on the same ports. Raise IncompleteRun if that fails."""
        self._stop(0)
        try:
            self._start()
        except LabError as error:
            raise IncompleteRun(
                f"{self._name} had to be started again: {error}"
            ) from error

    def _start(self) -> None:
        command = OWN.command("clientlab.link", "--rtt", f"{self._link.rtt:.9f}")
        if self._link.bandwidth is not None:
            command += ["--bandwidth", f"{self._link.bandwidth:.3f}bit"]
        for host, port in self._targets:
            shown = f"[{host}]" if ":" in host else host
            command += ["--forward", f"{shown}:{port}"]
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
            self._ports = json.loads(self._read_line())["ports"]
        except ValueError as error:
            self._stop(_STOP_SECONDS)  # unless it has ended by itself
            how = child_processes.describe_end(self._process, self._log)
            raise LabError(
                f"{self._name} did not start: it {how} (log: {self._log})"
            ) from error
        except BaseException:  # Ctrl-C: nobody else knows the process yet
            self._stop(0)
            raise

    def _read_line(self) -> bytes:
        """Return the next line that the process prints.

        Return nothing if it has ended, or is silent for a long time.
        """
        output = self._process.stdout
        assert output is not None  # noqa: S101 - it is a pipe
        with selectors.DefaultSelector() as selector:
            selector.register(output, selectors.EVENT_READ)
            is_readable = selector.select(_ANSWER_SECONDS)
        return output.readline() if is_readable else b""

    def _stop(self, patience: float) -> None:
        child_processes.stop(self._process, patience)
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()


@dataclass(frozen=True)
class LinkedTestbed:
    """A testbed seen through a link that has been started."""

    testbed: LocalTestbed | ExternalServers
    process: LinkProcess

    def serve(self, upstream: str) -> None:
        """Start that upstream unless it is running, and the link if it has ended."""
        self.testbed.serve(upstream)
        try:
            self.process.check()
        except ServerLost:
            self.process.restart()

    def address(self, upstream: str, route: str) -> PeerAddress:
        return self.testbed.behind_link(upstream, route, self.process.port_of)

    def reading(self, upstream: str, route: str) -> ServerCounters:
        self.process.check()
        counters = self.testbed.reading(upstream, route)
        return counters.updated(link=self.process.read_use())

    def faults_of(self, upstream: str) -> FaultControl:
        return self.testbed.faults_of(upstream)

    def check(self) -> None:
        self.process.check()
        self.testbed.check()

    def trouble(self, upstream: str, route: str, workload: Workload) -> str | None:
        return self.testbed.trouble(upstream, route, workload)
