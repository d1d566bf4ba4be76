"""Compose testbed: the lab's own upstreams, proxy and link run in containers.

Variables of the environment have their addresses.
"""

from __future__ import annotations

import http.client
import socket
import tempfile
from collections.abc import Iterable, Mapping
from typing import IO

from clientlab.errors import IncompleteRun, LabError, ServerLost
from clientlab.results.server_counters import ServerCounters
from clientlab.settings import UPSTREAMS, find_upstream
from clientlab.testbeds.local import ca_bundle
from clientlab.testbeds.servers import (
    Endpoint,
    FaultControl,
    read_proxy,
    read_upstream,
)
from clientlab.trial.context import PeerAddress
from clientlab.workload.values import Link, make_link, parse_bandwidth, parse_rtt
from clientlab.workload.workload import Workload

_ADDRESSES = {
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
_DEFAULTS = _ADDRESSES | {
    f"LINK_{name}": f"link:{port}"
    for name, port in zip(_ADDRESSES, _LINK_PORTS, strict=False)
}
"""The same with the addresses of the link that lead to these servers."""

_VARIABLES = {
    "direct": "{}_ADDRESS",
    "proxy": "PROXY_{}_ADDRESS",
    "proxy-tls": "PROXY_{}_TLS_ADDRESS",
}
"""The variable of an upstream's address by route."""

_CA_PATH = "/root.crt"  # where the proxy's site for metrics serves its CA (Caddyfile)


class ComposeTestbed:
    """Upstreams and proxy at the addresses of the environment.

    Raise LabError for an invalid address or link.

    `linked`: clients call them through the stack's link. A host name is resolved once,
    so that clients do not ask a name server for each connection. With TLS, the name
    stays, because the certificate is for it.
    """

    def __init__(self, environment: Mapping[str, str], *, linked: bool = False) -> None:
        self._environment = environment
        self._named = {
            name: _parse_address(name, environment.get(name) or default, default)
            for name, default in _DEFAULTS.items()
        }
        self._link = link_of_stack(environment)
        self._way = "LINK_" if linked else ""
        self._found: dict[str, Endpoint] = {}
        self._bundle: IO[str] | None = None

    def serve(self, upstream: str) -> None:
        """Raise ServerLost if the upstream's health check fails.

        With a link, check through the link, too.
        """
        variable = _variable(upstream, "direct")
        for name in dict.fromkeys([variable, self._way + variable]):
            trouble = self._resolve(name).check_health()
            if trouble:
                raise ServerLost(trouble)

    def address(self, upstream: str, route: str) -> PeerAddress:
        endpoint = self._endpoint(upstream, route)
        return PeerAddress(endpoint.url, ca_file=endpoint.ca_file)

    def reading(self, upstream: str, route: str) -> ServerCounters:
        use = read_upstream(self._resolve(_variable(upstream, "direct")))
        if route == "direct":
            return ServerCounters(upstream=use)
        proxy = read_proxy(self._resolve("PROXY_METRICS_ADDRESS"))
        return ServerCounters(upstream=use, proxy=proxy)

    def faults_of(self, upstream: str) -> FaultControl:
        return FaultControl(self._resolve(_variable(upstream, "direct")))

    def check(self) -> None:
        """Do nothing: the lab did not start the processes of the containers."""

    def trouble(self, upstream: str, route: str, workload: Workload) -> str | None:  # noqa: ARG002 - the protocol's
        direct = self._resolve(_variable(upstream, "direct")).check_health()
        return direct or self._endpoint(upstream, route).check_health()

    def links(self) -> dict[Link, ComposeTestbed]:
        """Return the stack behind its link, or nothing without a link."""
        if self._link is None:
            return {}
        return {self._link: ComposeTestbed(self._environment, linked=True)}

    def programs(self) -> dict[str, str]:
        """Return the addresses of the servers, and the link if there is one."""
        programs = {}
        for name in _ADDRESSES:
            host, port = self._named[name]
            programs[name.lower()] = f"{name}={host}:{port}"
        if self._link is not None:
            programs["link"] = f"a container that emulates {self._link}"
        return programs

    def _endpoint(self, upstream: str, route: str) -> Endpoint:
        name = self._way + _variable(upstream, route)
        if route == "proxy-tls":
            return Endpoint(*self._named[name], self._find_ca_file())
        return self._resolve(name)

    def _find_ca_file(self) -> str:
        """Return the path of a PEM file with the proxy's CA, as in `LocalTestbed`."""
        if self._bundle is None:
            endpoint = self._resolve("PROXY_METRICS_ADDRESS")
            url = f"{endpoint.url}{_CA_PATH}"
            try:
                status, ca = endpoint.get(_CA_PATH)
            except (OSError, http.client.HTTPException, UnicodeError) as error:
                raise ServerLost(f"{url} does not answer: {error}") from error
            if "BEGIN CERTIFICATE" not in ca:
                raise IncompleteRun(
                    f"{url} has no CA (status {status}); proxy-tls needs it"
                )
            self._bundle = tempfile.NamedTemporaryFile(  # noqa: SIM115 - kept
                "w", prefix="clientlab-ca-", suffix=".pem", encoding="utf-8"
            )
            self._bundle.write(ca_bundle(ca))
            self._bundle.flush()
        return self._bundle.name

    def _resolve(self, name: str) -> Endpoint:
        """Return the endpoint of a variable, with its IP address.

        Raise IncompleteRun if the name is not found.
        """
        if name not in self._found:
            host, port = self._named[name]
            try:
                peers = socket.getaddrinfo(
                    host, port, socket.AF_INET, socket.SOCK_STREAM
                )
            except (OSError, UnicodeError) as error:
                raise IncompleteRun(
                    f"{name}={host}:{port}: the host is not found ({error})"
                ) from error
            *_, peer = peers[0]
            self._found[name] = Endpoint(str(peer[0]), port)
        return self._found[name]


def _parse_address(name: str, text: str, example: str) -> tuple[str, int]:
    """Return the host and the port of an address. Raise LabError."""
    host, _, port = text.rpartition(":")
    is_number = port.isascii() and port.isdigit()
    if not host or not is_number or not 0 < int(port) < 65536:
        raise LabError(f"{name}={text!r} is not HOST:PORT; write it as {example}")
    return host, int(port)


def _variable(upstream: str, route: str) -> str:
    return _VARIABLES[route].format(upstream.upper())


def link_of_stack(environment: Mapping[str, str]) -> Link | None:
    """Return the link that LINK_RTT and LINK_BANDWIDTH describe, or None without both.

    Raise LabError.
    """
    rtt = environment.get("LINK_RTT", "")
    bandwidth = environment.get("LINK_BANDWIDTH", "")
    try:
        return make_link(
            parse_rtt(rtt) if rtt else None,
            parse_bandwidth(bandwidth) if bandwidth else None,
        )
    except ValueError as error:
        raise LabError(
            f"LINK_RTT={rtt} and LINK_BANDWIDTH={bandwidth}: {error}"
        ) from error


def check_plain(names: Iterable[str]) -> None:
    """Raise LabError for an upstream with settings.

    The containers have those with which they were started.
    """
    for name in names:
        if find_upstream(name).special:
            raise LabError(
                f"upstream {name!r}: the containers serve only"
                f" {', '.join(UPSTREAMS)}; measure it on one machine, without --cluster"
            )


def check_link(environment: Mapping[str, str], links: Iterable[Link]) -> None:
    """Raise LabError for a link that is not the stack's: its container emulates one."""
    of_stack = link_of_stack(environment)
    for link in links:
        if link != of_stack:
            has = f"emulates {of_stack}" if of_stack else "has no link"
            raise LabError(
                f"a link of {link}, and the stack {has}; start it with LINK_RTT (and"
                " LINK_BANDWIDTH) and --profile link, or measure on one machine,"
                " without --cluster"
            )
