"""Compose testbed: the lab's own upstreams, proxy and link run in containers, at addresses of the environment."""

from __future__ import annotations

import http.client
import os
import socket
import tempfile
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import IO

from clientlab.errors import IncompleteRun, LabError, ServerLost
from clientlab.experiments.experiment import Experiment
from clientlab.measuring.connections import PeerAddress
from clientlab.results.server_counters import ServerCounters
from clientlab.testbeds.local import ROUTES, ca_bundle
from clientlab.testbeds.scrape import Endpoint, get, proxy_use, unhealthy, upstream_use
from clientlab.upstreams import UPSTREAMS, find
from clientlab.workload.link import Link, bandwidth_of, link_of, rtt_of
from clientlab.workload.workload import Workload

ADDRESSES = {
    "FLASK_ADDRESS": "flask:8000",
    "AIOHTTP_ADDRESS": "aiohttp:8000",
    "PROXY_FLASK_ADDRESS": "proxy:9001",
    "PROXY_AIOHTTP_ADDRESS": "proxy:9002",
    "PROXY_FLASK_TLS_ADDRESS": "proxy:9443",
    "PROXY_AIOHTTP_TLS_ADDRESS": "proxy:9444",
    "PROXY_METRICS_ADDRESS": "proxy:9003",
}
"""Environment variables with the addresses of the servers, and their defaults."""

_LINK_PORTS = (8000, 8001, 9001, 9002, 9443, 9444)
LINK_ADDRESSES = {f"LINK_{name}": f"link:{port}" for name, port in zip(ADDRESSES, _LINK_PORTS, strict=False)}
"""Environment variables with the addresses of the link that lead to these servers, and their defaults."""

LINK_RTT, LINK_BANDWIDTH = "LINK_RTT", "LINK_BANDWIDTH"
"""Environment variables that describe the link of the stack; without both, it has none."""

_CA_PATH = "/root.crt"
"""Where the site with the proxy's metrics has the proxy's CA (Caddyfile)."""

_SUFFIXES = dict(zip(ROUTES, ("ADDRESS", "ADDRESS", "TLS_ADDRESS"), strict=True))


class ComposeTestbed:
    """Upstreams and proxy at the addresses of the environment. Raise LabError for an invalid address or link.

    `linked`: clients call them through the stack's link; counters are read without it. A host name is resolved once:
    clients would otherwise ask the container network's name server for each connection. With TLS, the name stays,
    because the certificate is for it.
    """

    def __init__(self, environment: Mapping[str, str], *, linked: bool = False) -> None:
        defaults = ADDRESSES | LINK_ADDRESSES
        self._named = {name: _split(name, environment.get(name) or default) for name, default in defaults.items()}
        self._environment, self._link = environment, link_of_stack(environment)
        self._way = "LINK_" if linked else ""
        self._found: dict[str, Endpoint] = {}
        self._bundle: IO[str] | None = None

    def serve(self, upstream: str) -> None:
        """Raise ServerLost if the upstream does not answer a health check, also through the link if there is one."""
        for way in dict.fromkeys(("", self._way)):
            if trouble := unhealthy(self._at(way + _variable(upstream, "direct"))):
                raise ServerLost(trouble)

    def base_url(self, upstream: str, route: str) -> str:
        return self._endpoint(upstream, route).url

    def address(self, upstream: str, route: str) -> PeerAddress:
        return PeerAddress(self._named[self._way + _variable(upstream, route)][1])

    def ca_file(self, upstream: str, route: str) -> str | None:  # noqa: ARG002 - equal for both upstreams
        """Return a PEM file with the proxy's CA and all CAs that libraries trust by default, as in `LocalTestbed`."""
        if route != "proxy-tls":
            return None
        if self._bundle is None:
            own = _get_ca(self._at("PROXY_METRICS_ADDRESS"))
            self._bundle = tempfile.NamedTemporaryFile("w", prefix="clientlab-ca-", suffix=".pem", encoding="utf-8")  # noqa: SIM115 - kept
            self._bundle.write(ca_bundle(own))
            self._bundle.flush()
        return self._bundle.name

    def reading(self, upstream: str, route: str) -> ServerCounters:
        """Return the counters now. Raise IncompleteRun if a server does not answer."""
        use = upstream_use(self._at(_variable(upstream, "direct")))
        proxy = None if route == "direct" else proxy_use(self._at("PROXY_METRICS_ADDRESS"))
        return ServerCounters(upstream=use, proxy=proxy)

    def check(self) -> None:
        """Do nothing: the processes of the containers are not the lab's."""

    def trouble(self, upstream: str, route: str, workload: Workload) -> str | None:  # noqa: ARG002 - not needed here
        """Return why the upstream's health check fails, by itself or by the route; None if it is answered."""
        direct = unhealthy(self._at(_variable(upstream, "direct")))
        alone = route == "direct" and not self._way
        return direct or (None if alone else unhealthy(self._endpoint(upstream, route)))

    def links(self) -> dict[Link, ComposeTestbed]:
        """Return the stack behind its link; empty without one."""
        return {} if self._link is None else {self._link: ComposeTestbed(self._environment, linked=True)}

    def programs(self) -> dict[str, str]:
        """Return the addresses of the servers, and the link if there is one, for the run's surroundings."""
        shown = {name.lower(): f"{name}={self._named[name][0]}:{self._named[name][1]}" for name in ADDRESSES}
        return shown if self._link is None else shown | {"link": f"a container that emulates {self._link}"}

    def _endpoint(self, upstream: str, route: str) -> Endpoint:
        name, authority = self._way + _variable(upstream, route), self.ca_file(upstream, route)
        return self._at(name) if authority is None else Endpoint(*self._named[name], Path(authority))

    def _at(self, name: str) -> Endpoint:
        """Return the endpoint of a variable, with its IP address. Raise IncompleteRun if the name is not found."""
        if name not in self._found:
            host, port = self._named[name]
            try:
                peer = socket.getaddrinfo(host, port, socket.AF_INET, socket.SOCK_STREAM)[0][4]
            except (OSError, UnicodeError) as error:
                raise IncompleteRun(f"{name}={host}:{port}: the host is not found ({error})") from error
            self._found[name] = Endpoint(str(peer[0]), port)
        return self._found[name]


def check_plain(names: Iterable[str]) -> None:
    """Raise LabError for an upstream with settings: the containers have those with which they were started."""
    if found := [name for name in names if find(name).special]:
        raise LabError(
            f"upstream {found[0]!r}: the containers serve {', '.join(UPSTREAMS)} as they are; "
            "measure servers with settings on one machine, without --cluster"
        )


def link_of_stack(environment: Mapping[str, str]) -> Link | None:
    """Return the link that the environment describes; None without one. Raise LabError for an invalid one."""
    texts = {name: environment.get(name) or None for name in (LINK_RTT, LINK_BANDWIDTH)}
    rtt, bandwidth = texts.values()
    try:
        return link_of(rtt and rtt_of(rtt), bandwidth and bandwidth_of(bandwidth))
    except ValueError as error:
        given = ", ".join(f"{name}={text}" for name, text in texts.items() if text)
        raise LabError(f"{given}: {error}") from error


def for_stack(experiment: Experiment) -> tuple[Experiment, list[str]]:
    """Return the experiment as the stack measures it, and what that changed. Raise LabError.

    Control arms behind links of their own are left out. An experiment without links gets that of the stack.
    """
    experiment, changed = experiment.without_linked_controls()
    link = None if experiment.has_link else link_of_stack(os.environ)
    if link is None:
        return experiment, changed
    return experiment.behind(link), [*changed, f"link: none → {link}"]


def check_link(environment: Mapping[str, str], links: Collection[Link]) -> None:
    """Raise LabError for a link that is not that of the stack: its container emulates only one."""
    own = link_of_stack(environment)
    if other := next((link for link in links if link != own), None):
        has = f"emulates {own}" if own else "has no link"
        raise LabError(
            f"a link of {other}, and the stack {has}; start it with {LINK_RTT} (and {LINK_BANDWIDTH}) "
            "and --profile link, or measure on one machine, without --cluster"
        )


def _variable(upstream: str, route: str) -> str:
    """Return the name of the variable with the address."""
    return f"{'' if route == 'direct' else 'PROXY_'}{upstream.upper()}_{_SUFFIXES[route]}"


def _get_ca(metrics: Endpoint) -> str:
    where = f"{metrics.url}{_CA_PATH}"
    try:
        status, text = get(metrics, _CA_PATH)
    except (OSError, http.client.HTTPException, UnicodeError) as error:
        raise ServerLost(f"{where} does not answer: {error}") from error
    if status != http.HTTPStatus.OK or "BEGIN CERTIFICATE" not in text:
        raise IncompleteRun(f"{where} has no CA (status {status}); the route proxy-tls needs the proxy's CA")
    return text


def _split(name: str, text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        raise LabError(f"{name}={text!r} is no HOST:PORT; write it as {(ADDRESSES | LINK_ADDRESSES)[name]}")
    return host, int(port)
