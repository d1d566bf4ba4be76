"""Servers as processes of this machine: sockets, the wait until they answer, and the commands of upstreams."""

from __future__ import annotations

import contextlib
import http.client
import os
import re
import socket
import subprocess
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from clientlab import child_processes
from clientlab.errors import IncompleteRun, LabError, ServerLost
from clientlab.measuring.trial_handle import OWN
from clientlab.testbeds.scrape import Endpoint, get, upstream_use
from clientlab.upstreams import Upstream

LOOPBACK = "127.0.0.1"

_SETTINGS = ("MOCKUPSTREAM_", "GUNICORN_")
"""Prefixes of variables that change how an upstream serves. Those of the caller's shell do not reach it."""

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
        """Return whether it answers, all its workers run, and it accepts connections (with TLS) on all its sites."""
        try:
            if get(self.endpoint, "/healthz", timeout=1.0)[0] != http.HTTPStatus.OK:
                return False
            for site in self.sites:
                with contextlib.closing(site.connect(timeout=1.0)) as connection:
                    connection.connect()
            return not self.workers or (upstream_use(self.endpoint).processes or 0) >= self.workers
        except (OSError, http.client.HTTPException, IncompleteRun):
            return False  # not listening yet

    def is_lost(self, timeout: float) -> bool:
        """Return whether it has ended, is frozen, or does not answer within `timeout` seconds."""
        try:
            self.check()
            return get(self.endpoint, "/healthz", timeout)[0] != http.HTTPStatus.OK
        except (OSError, http.client.HTTPException, ServerLost):
            return True

    def check(self) -> None:
        """Raise ServerLost if the process has ended, or if it or a worker of it is stopped, as by SIGSTOP."""
        if self.process.poll() is not None:
            raise ServerLost(f"{self.name} {child_processes.how_it_ended(self.process, self.log)} (log: {self.log})")
        if frozen := child_processes.stopped(self.process.pid):
            raise ServerLost(f"{self.name} is frozen: its process {frozen[0]} is stopped (log: {self.log})")

    def wait(self) -> None:
        """Return when it is ready. Raise LabError if it ends before, or is not ready in time."""
        deadline = time.monotonic() + _START_SECONDS
        while not self.ready():
            if self.process.poll() is not None:
                how = child_processes.how_it_ended(self.process, self.log)
                raise LabError(f"{self.name} did not start: it {how} (log: {self.log})")
            if time.monotonic() > deadline:  # looked at last: the lab itself may have been stopped meanwhile
                raise LabError(f"{self.name} did not answer within {_START_SECONDS:g} s (log: {self.log})")
            time.sleep(_POLL_SECONDS)


def listener_on(name: str, port: int) -> socket.socket:
    """Return a bound socket, so that no other process can take the port. Raise LabError if it is in use."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # old connections may still be closing
    try:
        listener.bind((LOOPBACK, port))
    except OSError as error:
        listener.close()
        raise LabError(f"port {port} for {name}: {error.strerror}; name another or stop what listens there") from error
    return listener


def free_ports(wanted: Mapping[str, int]) -> list[int]:
    """Return a free port for each server that cannot take a bound socket. `wanted`: name → port, 0 for any."""
    with contextlib.ExitStack() as held:
        listeners = [held.enter_context(listener_on(name, port)) for name, port in wanted.items()]
        return [listener.getsockname()[1] for listener in listeners]


_BACKLOG = 2048
_MOST_BACKLOG = 65_535  # as servers/mockupstream/settings.py has it


@dataclass(frozen=True)
class WorkerCounts:
    """Processes of the upstreams without settings. `threads`: requests that one Flask process can hold at once.

    `backlog`: connections that may wait to be accepted.
    """

    flask: int
    aiohttp: int
    threads: int
    backlog: int = _BACKLOG


def workers_for(concurrency: int, cpus: Collection[int] = ()) -> WorkerCounts:
    """Return enough workers that the upstream does not limit a trial with `concurrency` requests in flight.

    Flask needs a thread for each delayed request. Half of the CPU cores stay free for the client. `cpus`: those to
    which the upstream is pinned.
    """
    own = len(cpus) or max(1, (os.cpu_count() or 2) // 2)
    flask = max(2, own)
    threads = max(32, -(-concurrency // flask) + 8)
    return WorkerCounts(flask, own, threads, min(max(_BACKLOG, concurrency), _MOST_BACKLOG))


def start(
    upstream: Upstream, workers: WorkerCounts, listener: socket.socket, logs: Path, cpus: Collection[int] = ()
) -> Server:
    """Start to serve on a bound socket, which the caller still owns, on these CPUs. Raise LabError or OSError."""
    for module in ("mockupstream", "gunicorn", upstream.framework):
        if find_spec(module) is None:
            raise LabError(
                f"{module} is not installed, so upstream {upstream.name!r} can't be started; pip install clientlab, "
                "or measure a server of yours with --url"
            )
    descriptor = listener.fileno()
    command = OWN.command("mockupstream.gunicorn_server", "-c", "python:mockupstream.gunicorn_config")
    environment = {
        "MOCKUPSTREAM_FRAMEWORK": upstream.framework,
        "MOCKUPSTREAM_BIND": f"fd://{descriptor}",
        "MOCKUPSTREAM_WORKERS": str(_workers(upstream, workers)),
        "MOCKUPSTREAM_WORKER_CLASS": upstream.worker_class,
    }
    if upstream.framework == "flask":  # the other needs no thread for a request
        environment["MOCKUPSTREAM_THREADS"] = str(_threads(upstream, workers))
    if upstream.development:
        listener.listen(socket.SOMAXCONN)  # werkzeug needs a socket that is listening
        command = OWN.command("mockupstream", upstream.framework, "--fd", str(descriptor))
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(_SETTINGS)}
    environment = {**inherited, "MOCKUPSTREAM_BACKLOG": str(workers.backlog), **environment}
    log = logs / f"{re.sub(r'[^A-Za-z0-9.]+', '-', upstream.name)}.log"
    process = child_processes.start(command, log, environment, [descriptor], cpus=cpus)
    endpoint = Endpoint(LOOPBACK, listener.getsockname()[1])
    return Server(upstream.name, endpoint, process, log, _workers(upstream, workers))


def description(upstream: Upstream, workers: WorkerCounts) -> str:
    """Return how the upstream is served, for the run's surroundings."""
    count = _workers(upstream, workers)
    if upstream.framework == "aiohttp":
        return "aiohttp's run_app, 1 process, asyncio" if upstream.development else f"gunicorn uvloop, {count} workers"
    if upstream.development:
        return "werkzeug's development server, a thread and a connection for each request"
    if upstream.worker_class == "sync":
        return f"gunicorn sync, {count} workers, a connection for each request"
    return f"gunicorn gthread, {count} workers x {_threads(upstream, workers)} threads"


def _workers(upstream: Upstream, workers: WorkerCounts) -> int:
    if upstream.development:
        return 1
    plain: int = getattr(workers, upstream.framework)
    return upstream.workers or plain


def _threads(upstream: Upstream, workers: WorkerCounts) -> int:
    """Return the threads of each process: by default, all together hold as many requests as the plain upstream."""
    if upstream.threads is not None:
        return upstream.threads
    return -(-workers.flask * workers.threads // _workers(upstream, workers))
