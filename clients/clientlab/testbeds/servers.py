"""Servers of the lab: how they start, whether they answer, and what they count."""

from __future__ import annotations

import contextlib
import http.client
import json
import math
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
from clientlab.results.server_counters import FaultCounts, ServerUse
from clientlab.settings import Setting, Upstream, write_setting
from clientlab.workload.faults import Faults

LOOPBACK = "127.0.0.1"
# Variables that change how an upstream serves; the shell's do not reach it.
_SETTINGS = ("MOCKUPSTREAM_", "GUNICORN_")
_START_SECONDS = 30.0
_BACKLOG = 2048
_MOST_BACKLOG = 65_535  # as in servers/mockupstream/settings.py


@dataclass(frozen=True)
class Endpoint:
    """The address of a server. `ca_file`: the CA of a server with TLS."""

    host: str
    port: int
    ca_file: str | None = None

    @property
    def url(self) -> str:
        scheme = "https" if self.ca_file else "http"
        return f"{scheme}://{self.host}:{self.port}"

    def connect(self, timeout: float) -> http.client.HTTPConnection:
        """Return a connection that is not yet open.

        Raise OSError if the CA file is missing.
        """
        if self.ca_file is None:
            return http.client.HTTPConnection(self.host, self.port, timeout=timeout)
        context = ssl.create_default_context(cafile=self.ca_file)
        return http.client.HTTPSConnection(
            self.host, self.port, timeout=timeout, context=context
        )

    def get(self, path: str, timeout: float = 10.0) -> tuple[int, str]:
        """Return status and body of one GET on a new connection.

        Raise OSError or HTTPException.
        """
        return self.ask("GET", path, timeout=timeout)

    def ask(
        self, method: str, path: str, body: str | None = None, timeout: float = 10.0
    ) -> tuple[int, str]:
        """Return status and body of one response on a new connection.

        Raise OSError or HTTPException.
        """
        with contextlib.closing(self.connect(timeout)) as connection:
            connection.request(method, path, body, {"Connection": "close"})
            response = connection.getresponse()
            return response.status, response.read().decode()

    def check_health(self, timeout: float = 5.0) -> str | None:
        """Return why the health check fails, or None if it succeeds.

        A server that works answers at once, unless requests hold all its threads.
        """
        where = f"{self.url}/healthz"
        try:
            status, _ = self.get("/healthz", timeout)
        except (OSError, http.client.HTTPException) as error:
            reason = str(error) or type(error).__name__
            silent = f"{where} does not answer within {timeout:g} s ({reason})"
            return find_exhaustion(error) or silent
        return None if status == http.HTTPStatus.OK else f"{where} answers {status}"


def read_upstream(endpoint: Endpoint) -> ServerUse:
    """Return the CPU time and the counters of an upstream since its start.

    Raise IncompleteRun.
    """
    samples = _scrape(endpoint, "mockupstream_")

    def add_up(name: str) -> float:
        return _add_up(samples, f"mockupstream_{name}")

    def list_by_worker(name: str) -> list[float] | None:
        by_worker = {
            int(sample.labels["worker"]): sample.value
            for sample in samples
            if sample.name == f"mockupstream_{name}"
        }
        return [by_worker[worker] for worker in sorted(by_worker)] or None

    failed = [
        sample.value for sample in samples if sample.labels.get("status", "") >= "400"
    ]
    worker_cpu_seconds = list_by_worker("worker_cpu_seconds_total")
    return ServerUse(
        cpu_seconds=add_up("cpu_seconds_total"),
        requests=int(add_up("requests_total")),
        failed_requests=int(sum(failed)),
        request_body_bytes=int(add_up("request_body_bytes_total")),
        response_body_bytes=int(add_up("response_body_bytes_total")),
        request_digest=int(add_up("request_digest_total")),
        in_flight=int(add_up("requests_in_flight")),
        connections=int(add_up("connections_accepted_total")),
        held_seconds=add_up("hold_seconds_sum"),
        # With those that gunicorn replaces just now.
        processes=len(worker_cpu_seconds or ()),
        slots=int(add_up("request_slots")) or None,
        cores=add_up("cores") or None,
        cpu_step_seconds=0.0,
        worker_cpu_seconds=worker_cpu_seconds,
        worker_held_seconds=list_by_worker("worker_hold_seconds_total"),
    )


@dataclass(frozen=True)
class FaultControl:
    """The faults of an upstream."""

    endpoint: Endpoint

    def begin(self, faults: Faults | None, seed: int) -> None:
        """Let the upstream begin with these faults, and forget what it counted.

        Raise ServerLost.
        """
        wire = "" if faults is None else faults.wire
        self._ask("PUT", json.dumps({"faults": wire, "seed": seed}))

    def read(self) -> FaultCounts:
        """Return what the upstream counted since then. Raise ServerLost."""
        return FaultCounts(**json.loads(self._ask("GET")))

    def _ask(self, method: str, body: str | None = None) -> str:
        try:
            status, text = self.endpoint.ask(method, "/faults", body)
        except (OSError, http.client.HTTPException) as error:
            silent = f"{self.endpoint.url}/faults does not answer: {error}"
            raise ServerLost(silent) from error
        if status not in {http.HTTPStatus.OK, http.HTTPStatus.NO_CONTENT}:
            raise IncompleteRun(f"{self.endpoint.url}/faults answered {status}: {text}")
        return text


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
    held_seconds = None
    if any(sample.name.startswith("caddy_http_") for sample in samples):
        held_seconds = _add_up(samples, "caddy_http_request_duration_seconds_sum")
    return ServerUse(
        cpu_seconds=_add_up(samples, "process_cpu_seconds_total"),
        held_seconds=held_seconds,
        cores=_add_up(samples, "go_sched_gomaxprocs_threads") or None,
    )


def _scrape(endpoint: Endpoint, *prefixes: str) -> list[Sample]:
    """Return the samples whose names begin with one of these, without buckets.

    Parsing all of them takes longer than reading the page.
    """
    try:
        status, text = endpoint.get("/metrics")
    except (OSError, http.client.HTTPException) as error:
        silent = f"{endpoint.url}/metrics does not answer: {error}"
        raise ServerLost(find_exhaustion(error) or silent) from error
    if status != http.HTTPStatus.OK:
        raise IncompleteRun(f"{endpoint.url}/metrics answered {status}")
    lines = [
        line
        for line in text.splitlines()
        if line.startswith(prefixes) and "_bucket{" not in line
    ]
    samples = []
    for family in text_string_to_metric_families("\n".join(lines)):
        samples += family.samples
    return samples


def _add_up(samples: list[Sample], name: str) -> float:
    return sum(sample.value for sample in samples if sample.name == name)


def check_process(name: str, process: subprocess.Popen[bytes], log: Path) -> None:
    """Raise ServerLost if a process has ended."""
    if process.poll() is not None:
        end = child_processes.describe_end(process, log)
        raise ServerLost(f"{name} {end} (log: {log})")


@dataclass
class Server:
    """A started server."""

    name: str

    endpoint: Endpoint
    """Where it serves its counters."""

    process: subprocess.Popen[bytes]
    log: Path

    workers: int = 0
    """Of an upstream, which counts as started when all of them run."""

    sites: Collection[Endpoint] = ()
    """Further addresses where it accepts connections."""

    def is_ready(self) -> bool:
        """Return whether it answers, accepts connections, and has all its workers."""
        if self.endpoint.check_health(timeout=1.0) is not None:
            return False
        try:
            for site in self.sites:
                with contextlib.closing(site.connect(timeout=1.0)) as connection:
                    connection.connect()
            if not self.workers:
                return True
            return (read_upstream(self.endpoint).processes or 0) >= self.workers
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
            # Checked last, because the lab itself may have been stopped meanwhile.
            if time.monotonic() > deadline:
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
    # Old connections may still be closing.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
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
    """Processes of the upstreams without settings."""

    flask: int
    aiohttp: int
    threads: int  # of a Flask process
    backlog: int = _BACKLOG  # waiting connections

    def processes(self, upstream: Upstream) -> int:
        if upstream.development:
            return 1
        plain = self.flask if upstream.framework == "flask" else self.aiohttp
        return upstream.workers or plain

    def threads_each(self, upstream: Upstream) -> int:
        """Return the threads per process.

        By default, all together hold as many requests as the plain upstream.
        """
        in_all = self.flask * self.threads
        return upstream.threads or math.ceil(in_all / self.processes(upstream))

    def describe(self, upstream: Upstream) -> str:
        """Return how an upstream is served, for the run's surroundings."""
        parts = [self._describe_server(upstream)]
        if upstream.keep_alive:
            parts.append(f"idle connections kept for {upstream.keep_alive} s")
        if upstream.max_requests:
            parts.append(f"a worker replaced after {upstream.max_requests} requests")
        if upstream.any_path:
            parts.append("any path")
        if upstream.changes_proxy:
            parts.append(
                f"proxy keeps idle connections for {upstream.proxy_idle} s, to the"
                f" upstream for {upstream.proxy_keep_alive} s"
            )
        return ", ".join(parts)

    def _describe_server(self, upstream: Upstream) -> str:
        count = self.processes(upstream)
        match upstream:
            case Upstream(framework="aiohttp", development=True):
                return "aiohttp's run_app, 1 process, asyncio"
            case Upstream(framework="aiohttp"):
                return f"gunicorn uvloop, {count} workers"
            case Upstream(development=True):
                return (
                    "werkzeug's development server, a thread and a connection for each"
                    " request"
                )
            case Upstream(worker_class="sync"):
                return f"gunicorn sync, {count} workers, a connection for each request"
        threads = self.threads_each(upstream)
        return f"gunicorn gthread, {count} workers x {threads} threads"


def choose_workers(concurrency: int, cpus: Collection[int] = ()) -> WorkerCounts:
    """Return enough workers for trials with this many requests in flight.

    The upstream does not limit them: Flask needs a thread for each delayed request.
    Half of the usable cores stay free for the client.
    """
    aiohttp = len(cpus) or max(1, int(cpu_usable() / 2))
    flask = max(2, aiohttp)
    threads = max(32, math.ceil(concurrency / flask) + 8)
    backlog = min(max(_BACKLOG, concurrency), _MOST_BACKLOG)
    return WorkerCounts(flask, aiohttp, threads, backlog)


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
            raise LabError(
                f"{module} is not installed, so upstream {upstream.name!r} can't be"
                " started; pip install clientlab, or measure a server of yours with"
                " --url"
            )
    descriptor = listener.fileno()
    if upstream.development:
        listener.listen(socket.SOMAXCONN)  # werkzeug needs a socket that is listening
        command = OWN.command(
            "mockupstream", upstream.framework, "--fd", str(descriptor)
        )
    else:
        command = OWN.command(
            "mockupstream.gunicorn_server", "-c", "python:mockupstream.gunicorn_config"
        )
    environment = _make_environment(upstream, workers, f"fd://{descriptor}", trace)
    log = logs / f"{re.sub(r'[^A-Za-z0-9.]+', '-', upstream.name)}.log"
    process = child_processes.start(command, log, environment, [descriptor], cpus=cpus)
    return Server(
        upstream.name,
        Endpoint(LOOPBACK, listener.getsockname()[1]),
        process,
        log,
        workers.processes(upstream),
    )


def _make_environment(
    upstream: Upstream, workers: WorkerCounts, bind: str, trace: Path | None
) -> dict[str, str]:
    settings: dict[str, Setting] = {
        "FRAMEWORK": upstream.framework,
        "BIND": bind,
        "BACKLOG": workers.backlog,
        "WORKERS": workers.processes(upstream),
        "WORKER_CLASS": upstream.worker_class,
        "KEEP_ALIVE": upstream.keep_alive,
        "MAX_REQUESTS": upstream.max_requests,
        "ANY_PATH": upstream.any_path,
    }
    if upstream.framework == "flask":  # aiohttp needs no threads
        settings["THREADS"] = workers.threads_each(upstream)
    if trace is not None:
        settings["TRACE"] = str(trace.absolute())
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(_SETTINGS)
    }
    for name, value in settings.items():
        if value:
            environment[f"MOCKUPSTREAM_{name}"] = write_setting(value)
    return environment
