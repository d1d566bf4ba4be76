"""Servers as processes of this machine: the sockets they listen on, and waiting until they answer."""

from __future__ import annotations

import contextlib
import http.client
import socket
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from clientlab import children
from clientlab.errors import IncompleteRun, LabError
from clientlab.homes.metrics_page import Endpoint, get, upstream_use

LOOPBACK = "127.0.0.1"

_START_SECONDS = 30.0
_POLL_SECONDS = 0.02


@dataclass
class Server:
    """A started server, the endpoint of its counters, and the further ones on which it is to accept connections."""

    name: str
    endpoint: Endpoint
    process: subprocess.Popen[bytes]
    log: Path
    workers: int = 0  # of an upstream: all of them are to be there before it counts as started
    sites: tuple[Endpoint, ...] = ()

    def ready(self) -> bool:
        """Whether it answers, with all its workers, and accepts on all its sites."""
        try:
            if get(self.endpoint, "/healthz", timeout=1.0)[0] != http.HTTPStatus.OK:
                return False
            for site in self.sites:
                site.greet(timeout=1.0)
            return not self.workers or upstream_use(self.endpoint)[1] >= self.workers
        except (OSError, http.client.HTTPException, IncompleteRun):
            return False  # not there yet

    def check(self) -> None:
        """Raises IncompleteRun where it has ended."""
        if self.process.poll() is not None:
            raise IncompleteRun(f"{self.name} {children.how_it_ended(self.process, self.log)} (log: {self.log})")

    def wait(self) -> None:
        """Return when it is ready. Raises LabError where it ends before, or is not in time."""
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                how = children.how_it_ended(self.process, self.log)
                raise LabError(f"{self.name} did not start: it {how} (log: {self.log})")
            if self.ready():
                return
            time.sleep(_POLL_SECONDS)
        raise LabError(f"{self.name} did not answer within {_START_SECONDS:g} s (log: {self.log})")


def listener_on(name: str, port: int) -> socket.socket:
    """A bound socket, handed to the server: nobody can take the port in between. Raises LabError where it is taken."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((LOOPBACK, port))
    except OSError as error:
        listener.close()
        raise LabError(f"port {port} for {name}: {error.strerror}; name another or stop what listens there") from error
    return listener


def free_ports(wanted: Mapping[str, int]) -> list[int]:
    """Name → port, 0 for any that is free, of servers that can't be handed a socket. All are different."""
    with contextlib.ExitStack() as held:
        listeners = [held.enter_context(listener_on(name, port)) for name, port in wanted.items()]
        return [listener.getsockname()[1] for listener in listeners]
