"""Servers as processes of this machine: their listening sockets, and the wait until they answer."""

from __future__ import annotations

import contextlib
import http.client
import socket
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from clientlab import child_processes
from clientlab.errors import IncompleteRun, LabError, ServerLost
from clientlab.testbeds.scrape import Endpoint, get, upstream_use

LOOPBACK = "127.0.0.1"

_START_SECONDS = 30.0
_POLL_SECONDS = 0.02


@dataclass
class Server:
    """A started server. `endpoint` has its counters; `sites` are further addresses where it accepts connections."""

    name: str
    endpoint: Endpoint
    process: subprocess.Popen[bytes]
    log: Path
    workers: int = 0  # an upstream counts as started when all its workers run
    sites: tuple[Endpoint, ...] = ()

    def ready(self) -> bool:
        """Whether it answers, all its workers run, and it accepts connections on all its sites."""
        try:
            if get(self.endpoint, "/healthz", timeout=1.0)[0] != http.HTTPStatus.OK:
                return False
            for site in self.sites:
                site.greet(timeout=1.0)
            return not self.workers or (upstream_use(self.endpoint).processes or 0) >= self.workers
        except (OSError, http.client.HTTPException, IncompleteRun):
            return False  # not listening yet

    def is_lost(self, timeout: float) -> bool:
        """Whether it has ended, is frozen, or does not answer within `timeout` seconds."""
        try:
            self.check()
            return get(self.endpoint, "/healthz", timeout)[0] != http.HTTPStatus.OK
        except (OSError, http.client.HTTPException, ServerLost):
            return True

    def check(self) -> None:
        """Raises ServerLost if the process has ended, or if it or a worker of it is stopped, as by SIGSTOP."""
        if self.process.poll() is not None:
            raise ServerLost(f"{self.name} {child_processes.how_it_ended(self.process, self.log)} (log: {self.log})")
        if frozen := child_processes.stopped(self.process.pid):
            raise ServerLost(f"{self.name} is frozen: its process {frozen[0]} is stopped (log: {self.log})")

    def wait(self) -> None:
        """Return when it is ready. Raises LabError if it ends before, or is not ready in time."""
        deadline = time.monotonic() + _START_SECONDS
        while not self.ready():
            if self.process.poll() is not None:
                how = child_processes.how_it_ended(self.process, self.log)
                raise LabError(f"{self.name} did not start: it {how} (log: {self.log})")
            if time.monotonic() > deadline:  # looked at last: the lab itself may have been stopped meanwhile
                raise LabError(f"{self.name} did not answer within {_START_SECONDS:g} s (log: {self.log})")
            time.sleep(_POLL_SECONDS)


def listener_on(name: str, port: int) -> socket.socket:
    """A bound socket for a server, so that no other process can take the port. Raises LabError if it is in use."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    # Connections of a server that was there before may still be closing.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((LOOPBACK, port))
    except OSError as error:
        listener.close()
        raise LabError(f"port {port} for {name}: {error.strerror}; name another or stop what listens there") from error
    return listener


def free_ports(wanted: Mapping[str, int]) -> list[int]:
    """A free port for each server that cannot take a bound socket. `wanted`: name → port, 0 for any. All differ."""
    with contextlib.ExitStack() as held:
        listeners = [held.enter_context(listener_on(name, port)) for name, port in wanted.items()]
        return [listener.getsockname()[1] for listener in listeners]
