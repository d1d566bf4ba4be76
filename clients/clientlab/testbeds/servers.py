"""Servers of the lab: how they are started, whether they answer, and the counters that
they publish.
"""

from __future__ import annotations

import contextlib
import http.client
import os
import re
import socket
import ssl
import subprocess
import time
from collections.abc import Collection
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from clientlab.errors import IncompleteRun, LabError, ServerLost, find_exhaustion
from clientlab.machine import child_processes
from clientlab.machine.usage import cpu_usable
from clientlab.observing.process_handle import OWN
from clientlab.results.server_counters import ServerUse
from clientlab.settings import Upstream, write_setting

LOOPBACK = "127.0.0.1"
_SETTINGS = (
    "MOCKUPSTREAM_",
    "GUNICORN_",
)  # variables that change how an upstream serves; the shell's do not reach it
_START_SECONDS = 30.0
_BACKLOG = 2048
_MOST_BACKLOG = 65_535  # as in servers/mockupstream/settings.py


@dataclass(frozen=True)
class Endpoint:
    """The address of a server. `ca_file`: the CA of a server with TLS."""

    host: str
    port: int
    ca_file: Path | None = None

    @property
    def url(self) -> str:
        return f"{'https' if self.ca_file else 'http'}://{self.host}:{self.port}"

    def connect(self, timeout: float) -> http.client.HTTPConnection:
        """Return a connection that is not yet open.

        Raise OSError if the CA file is missing.
        """
        if self.ca_file is None:
            return http.client.HTTPConnection(self.host, self.port, timeout=timeout)
        context = ssl.create_default_context(cafile=str(self.ca_file))
        return http.client.HTTPSConnection(
            self.host, self.port, timeout=timeout, context=context
        )

    def get(self, path: str, timeout: float = 10.0) -> tuple[int, str]:
        """Return status and body of one GET on a new connection.

        Raise OSError or HTTPException.
        """
        with contextlib.closing(self.connect(timeout)) as connection:
            connection.request("GET", path, headers={"Connection": "close"})
            response = connection.getresponse()
            return response.status, response.read().decode()

    def check_health(self, timeout: float = 5.0) -> str | None:
        """Return why the health check fails, or None if it succeeds.

        A server that works answers at once, unless requests hold all its threads.
        """
        where = f"{self.url}/healthz"
        try:
            status = self.get("/healthz", timeout)[0]
        except (OSError, http.client.HTTPException) as error:
            silent = (
                f"{where} does not answer within {timeout:g} s"
                f" ({str(error) or type(error).__name__})"
            )
            return find_exhaustion(error) or silent
        return None if status == http.HTTPStatus.OK else f"{where} answers {status}"


def read_upstream(endpoint: Endpoint) -> ServerUse:
    """Return the CPU time and the counters of an upstream since its start.

    Raise IncompleteRun.
    """
    samples = _scrape(endpoint, "mockupstream_")

    def total(name: str) -> float:
        return _total(samples, f"mockupstream_{name}")

    def by_worker(name: str) -> list[float] | None:
        found = {
            int(one.labels["worker"]): one.value
            for one in samples
            if one.name == f"mockupstream_{name}"
        }
        return [found[number] for number in sorted(found)] or None

    workers = by_worker("worker_cpu_seconds_total")
    return ServerUse(
        cpu_seconds=total("cpu_seconds_total"),
        requests=int(total("requests_total")),
        failed_requests=int(
            sum(one.value for one in samples if one.labels.get("status", "") >= "400")
        ),
        request_body_bytes=int(total("request_body_bytes_total")),
        response_body_bytes=int(total("response_body_bytes_total")),
        request_digest=int(total("request_digest_total")),
        in_flight=int(total("requests_in_flight")),
        connections=int(total("connections_accepted_total")),
        held_seconds=total("hold_seconds_sum"),
        processes=len(workers or ()),  # with those that gunicorn replaces just now
        slots=int(total("request_slots")) or None,
        cores=total("cores") or None,
        cpu_step_seconds=0.0,
        worker_cpu_seconds=workers,
        worker_held_seconds=by_worker("worker_hold_seconds_total"),
    )


def read_proxy(endpoint: Endpoint) -> ServerUse:
    """Return the CPU time of the proxy since its start, and how long it held requests.

    Raise IncompleteRun.
    """
    samples = _scrape(
        endpoint,
        "process_cpu_seconds_total",
        "caddy_http_",
        "go_sched_gomaxprocs_threads",
    )
    counts = any(one.name.startswith("caddy_http_") for one in samples)
    return ServerUse(
        cpu_seconds=_total(samples, "process_cpu_seconds_total"),
        held_seconds=(
            _total(samples, "caddy_http_request_duration_seconds_sum")
            if counts
            else None
        ),
        cores=_total(samples, "go_sched_gomaxprocs_threads") or None,
    )


def _scrape(endpoint: Endpoint, *prefixes: str) -> list[Sample]:
    """Return samples by the start of their names, without buckets: parsing all takes
    longer than reading the page.
    """
    try:
        status, text = endpoint.get("/metrics")
    except (OSError, http.client.HTTPException) as error:
        silent = f"{endpoint.url}/metrics does not answer: {error}"
        raise ServerLost(find_exhaustion(error) or silent) from error
    if status != http.HTTPStatus.OK:
        raise IncompleteRun(f"{endpoint.url}/metrics answered {status}")
    lines = (
        line
        for line in text.splitlines()
        if line.startswith(prefixes) and "_bucket{" not in line
    )
    return [
        one
        for family in text_string_to_metric_families("\n".join(lines))
        for one in family.samples
    ]


def _total(samples: list[Sample], name: str) -> float:
    return sum(one.value for one in samples if one.name == name)


def check_process(name: str, process: subprocess.Popen[bytes], log: Path) -> None:
    """Raise ServerLost if a process has ended."""
    if process.poll() is not None:
        raise ServerLost(
            f"{name} {child_processes.describe_end(process, log)} (log: {log})"
        )


@dataclass
class Server:
    """A started server.

    `endpoint` has its counters; `sites` are further addresses where it accepts
    connections.
    """

    name: str
    endpoint: Endpoint
    process: subprocess.Popen[bytes]
    log: Path
    workers: int = 0  # an upstream counts as started when all its workers run
    sites: tuple[Endpoint, ...] = ()

    def is_ready(self) -> bool:
        """Return whether it answers, all its workers run, and it accepts connections
        (with TLS) on all its sites.
        """
        if self.endpoint.check_health(timeout=1.0) is not None:
            return False
        try:
            for site in self.sites:
                with contextlib.closing(site.connect(timeout=1.0)) as connection:
                    connection.connect()
            return (
                not self.workers
                or (read_upstream(self.endpoint).processes or 0) >= self.workers
            )
        except (OSError, IncompleteRun):
            return False  # not listening yet

    def is_lost(self, timeout: float) -> bool:
        """Return whether it has ended, or does not answer within `timeout` seconds."""
        return (
            self.process.poll() is not None
            or self.endpoint.check_health(timeout) is not None
        )

    def check(self) -> None:
        """Raise ServerLost if it has ended."""
        check_process(self.name, self.process, self.log)

    def stop(self, patience: float = 6.0) -> None:
        """Stop it, by force after `patience` seconds."""
        child_processes.stop(self.process, patience)

    def wait(self) -> None:
        """Return when it is ready.

        Raise LabError if it ends before, or is not ready in time.
        """
        deadline = time.monotonic() + _START_SECONDS
        while not self.is_ready():
            if self.process.poll() is not None:
                how = child_processes.describe_end(self.process, self.log)
                raise LabError(f"{self.name} did not start: it {how} (log: {self.log})")
            if (
                time.monotonic() > deadline
            ):  # checked last, because the lab itself may have been stopped meanwhile
                raise LabError(
                    f"{self.name} did not answer within {_START_SECONDS:g} s (log:"
                    f" {self.log})"
                )
            time.sleep(0.02)


def bind(name: str, port: int) -> socket.socket:
    """Return a bound socket, so that no other process can take the port.

    Raise LabError if it is in use.
    """
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(
        socket.SOL_SOCKET, socket.SO_REUSEADDR, 1
    )  # old connections may still be closing
    try:
        listener.bind((LOOPBACK, port))
    except OSError as error:
        listener.close()
        raise LabError(
            f"port {port} for {name}: {error.strerror}; name another or stop what"
            " listens there"
        ) from error
    return listener


@dataclass(frozen=True)
class WorkerCounts:
    """Processes of the upstreams without settings.

    `threads`: of a Flask process. `backlog`: waiting connections.
    """

    flask: int
    aiohttp: int
    threads: int
    backlog: int = _BACKLOG

    def processes(self, upstream: Upstream) -> int:
        plain = {"flask": self.flask, "aiohttp": self.aiohttp}[upstream.framework]
        return 1 if upstream.development else upstream.workers or plain

    def threads_each(self, upstream: Upstream) -> int:
        """Return the threads per process.

        By default, all together hold as many requests as the plain upstream.
        """
        return upstream.threads or -(
            -self.flask * self.threads // self.processes(upstream)
        )

    def describe(self, upstream: Upstream) -> str:
        """Return how an upstream is served, for the run's surroundings."""
        idle, keep_alive = upstream.proxy_idle, upstream.proxy_keep_alive
        parts = {
            self._describe_server(upstream): True,
            f"idle connections kept for {upstream.keep_alive} s": upstream.keep_alive,
            f"a worker replaced after {upstream.max_requests} requests": (
                upstream.max_requests
            ),
            "any path": upstream.any_path,
            f"proxy keeps idle connections for {idle} s, to the upstream for "
            f"{keep_alive} s": upstream.changes_proxy,
        }
        return ", ".join(part for part, is_set in parts.items() if is_set)

    def _describe_server(self, upstream: Upstream) -> str:
        count = self.processes(upstream)
        if upstream.framework == "aiohttp":
            development = "aiohttp's run_app, 1 process, asyncio"
            return (
                development
                if upstream.development
                else f"gunicorn uvloop, {count} workers"
            )
        if upstream.development:
            return (
                "werkzeug's development server, a thread and a connection for each"
                " request"
            )
        if upstream.worker_class == "sync":
            return f"gunicorn sync, {count} workers, a connection for each request"
        return (
            f"gunicorn gthread, {count} workers x {self.threads_each(upstream)} threads"
        )


def choose_workers(concurrency: int, cpus: Collection[int] = ()) -> WorkerCounts:
    """Return enough workers so that the upstream does not limit a trial with
    `concurrency` requests in flight.

    Flask needs a thread for each delayed request. Half of the usable cores stay free
    for the client.
    """
    own = len(cpus) or max(1, int(cpu_usable() / 2))
    flask = max(2, own)
    threads = max(32, -(-concurrency // flask) + 8)
    return WorkerCounts(
        flask, own, threads, min(max(_BACKLOG, concurrency), _MOST_BACKLOG)
    )


def start_upstream(  # noqa: PLR0913, PLR0917 - where it listens, logs and runs
    upstream: Upstream,
    workers: WorkerCounts,
    listener: socket.socket,
    logs: Path,
    cpus: Collection[int] = (),
    trace: Path | None = None,
) -> Server:
    """Start to serve on a bound socket, which the caller still owns, on these CPUs.

    `trace`: the folder of its log of requests.

    Raise LabError or OSError.
    """
    for module in ("mockupstream", "gunicorn", upstream.framework):
        if find_spec(module) is None:
            hint = "pip install clientlab, or measure a server of yours with --url"
            raise LabError(
                f"{module} is not installed, so upstream {upstream.name!r} can't be"
                f" started; {hint}"
            )
    descriptor, processes = listener.fileno(), workers.processes(upstream)
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(_SETTINGS)
    } | {
        "MOCKUPSTREAM_FRAMEWORK": upstream.framework,
        "MOCKUPSTREAM_BIND": f"fd://{descriptor}",
        "MOCKUPSTREAM_BACKLOG": str(workers.backlog),
        "MOCKUPSTREAM_WORKERS": str(processes),
        "MOCKUPSTREAM_WORKER_CLASS": upstream.worker_class,
    }
    if upstream.framework == "flask":  # aiohttp needs no threads
        environment["MOCKUPSTREAM_THREADS"] = str(workers.threads_each(upstream))
    for name in ("keep_alive", "max_requests", "any_path"):
        if value := getattr(upstream, name):
            environment[f"MOCKUPSTREAM_{name.upper()}"] = write_setting(value)
    if trace is not None:
        environment["MOCKUPSTREAM_TRACE"] = str(trace.absolute())
    command = OWN.command(
        "mockupstream.gunicorn_server", "-c", "python:mockupstream.gunicorn_config"
    )
    if upstream.development:
        listener.listen(socket.SOMAXCONN)  # werkzeug needs a socket that is listening
        command = OWN.command(
            "mockupstream", upstream.framework, "--fd", str(descriptor)
        )
    log = logs / f"{re.sub(r'[^A-Za-z0-9.]+', '-', upstream.name)}.log"
    process = child_processes.start(command, log, environment, [descriptor], cpus=cpus)
    return Server(
        upstream.name,
        Endpoint(LOOPBACK, listener.getsockname()[1]),
        process,
        log,
        processes,
    )
