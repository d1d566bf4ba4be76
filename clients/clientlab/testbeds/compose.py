"""Compose testbed: the lab's own upstreams, proxy and link run in containers, at
addresses of the environment.
"""

from __future__ import annotations

import http.client
import socket
import tempfile
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import IO

from clientlab.errors import IncompleteRun, LabError, ServerLost
from clientlab.results.server_counters import ServerCounters
from clientlab.settings import UPSTREAMS, find_upstream
from clientlab.testbeds.local import ca_bundle
from clientlab.testbeds.servers import Endpoint, read_proxy, read_upstream
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

_CA_PATH = "/root.crt"  # where the proxy's site for metrics serves its CA (Caddyfile)


class ComposeTestbed:
    """Upstreams and proxy at the addresses of the environment.

    Raise LabError for an invalid address or link.

    `linked`: clients call them through the stack's link. A host name is resolved once,
    so that clients do not ask a name server for each connection. With TLS, the name
    stays, because the certificate is for it.
    """

    def __init__(self, environment: Mapping[str, str], *, linked: bool = False) -> None:
        self._named: dict[str, tuple[str, int]] = {}
        for name, default in _DEFAULTS.items():
            text = environment.get(name) or default
            host, _, port = text.rpartition(":")
            if not host or not (
                port.isascii() and port.isdigit() and 0 < int(port) < 65536
            ):
                raise LabError(
                    f"{name}={text!r} is not HOST:PORT; write it as {default}"
                )
            self._named[name] = host, int(port)
        self._environment, self._link = environment, link_of_stack(environment)
        self._way = "LINK_" if linked else ""
        self._found: dict[str, Endpoint] = {}
        self._bundle: IO[str] | None = None

    def serve(self, upstream: str) -> None:
        """Raise ServerLost if the upstream's health check fails, also through the link
        if there is one.
        """
        for way in dict.fromkeys(("", self._way)):
            if trouble := self._resolve(
                way + _variable(upstream, "direct")
            ).check_health():
                raise ServerLost(trouble)

    def address(self, upstream: str, route: str) -> PeerAddress:
        endpoint = self._endpoint(upstream, route)
        return PeerAddress(
            endpoint.url,
            ca_file=None if endpoint.ca_file is None else str(endpoint.ca_file),
        )

    def reading(self, upstream: str, route: str) -> ServerCounters:
        use = read_upstream(self._resolve(_variable(upstream, "direct")))
        proxy = (
            None
            if route == "direct"
            else read_proxy(self._resolve("PROXY_METRICS_ADDRESS"))
        )
        return ServerCounters(upstream=use, proxy=proxy)

    def check(self) -> None:
        """Do nothing: the lab did not start the processes of the containers."""

    def trouble(self, upstream: str, route: str, workload: Workload) -> str | None:  # noqa: ARG002 - the protocol's
        direct = self._resolve(_variable(upstream, "direct")).check_health()
        return direct or self._endpoint(upstream, route).check_health()

    def links(self) -> dict[Link, ComposeTestbed]:
        """Return the stack behind its link, or nothing without a link."""
        return (
            {}
            if self._link is None
            else {self._link: ComposeTestbed(self._environment, linked=True)}
        )

    def programs(self) -> dict[str, str]:
        """Return the addresses of the servers, and the link if there is one, for the
        run's surroundings.
        """
        shown = {
            name.lower(): f"{name}={self._named[name][0]}:{self._named[name][1]}"
            for name in _ADDRESSES
        }
        return (
            shown
            if self._link is None
            else shown | {"link": f"a container that emulates {self._link}"}
        )

    def _endpoint(self, upstream: str, route: str) -> Endpoint:
        name = self._way + _variable(upstream, route)
        return (
            Endpoint(*self._named[name], self._find_ca_file())
            if route == "proxy-tls"
            else self._resolve(name)
        )

    def _find_ca_file(self) -> Path:
        """Return a PEM file with the proxy's CA and all CAs that libraries trust by
        default, as in `LocalTestbed`.
        """
        if self._bundle is None:
            metrics = self._resolve("PROXY_METRICS_ADDRESS")
            try:
                status, own = metrics.get(_CA_PATH)
            except (OSError, http.client.HTTPException, UnicodeError) as error:
                raise ServerLost(
                    f"{metrics.url}{_CA_PATH} does not answer: {error}"
                ) from error
            if "BEGIN CERTIFICATE" not in own:
                raise IncompleteRun(
                    f"{metrics.url}{_CA_PATH} has no CA (status {status}); proxy-tls"
                    " needs it"
                )
            self._bundle = tempfile.NamedTemporaryFile(  # noqa: SIM115 - kept
                "w", prefix="clientlab-ca-", suffix=".pem", encoding="utf-8"
            )
            self._bundle.write(ca_bundle(own))
            self._bundle.flush()
        return Path(self._bundle.name)

    def _resolve(self, name: str) -> Endpoint:
        """Return the endpoint of a variable, with its IP address.

        Raise IncompleteRun if the name is not found.
        """
        if name not in self._found:
            host, port = self._named[name]
            try:
                peer = socket.getaddrinfo(
                    host, port, socket.AF_INET, socket.SOCK_STREAM
                )[0][4]
            except (OSError, UnicodeError) as error:
                raise IncompleteRun(
                    f"{name}={host}:{port}: the host is not found ({error})"
                ) from error
            self._found[name] = Endpoint(str(peer[0]), port)
        return self._found[name]


def _variable(upstream: str, route: str) -> str:
    prefix, suffix = (
        "" if route == "direct" else "PROXY_",
        "_TLS" if route == "proxy-tls" else "",
    )
    return f"{prefix}{upstream.upper()}{suffix}_ADDRESS"


def link_of_stack(environment: Mapping[str, str]) -> Link | None:
    """Return the link that LINK_RTT and LINK_BANDWIDTH describe, or None without both.

    Raise LabError.
    """
    rtt, bandwidth = (
        environment.get(name, "") for name in ("LINK_RTT", "LINK_BANDWIDTH")
    )
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
    """Raise LabError for an upstream with settings: the containers have those with
    which they were started.
    """
    if found := [name for name in names if find_upstream(name).special]:
        message = (
            f"the containers serve only {', '.join(UPSTREAMS)}; measure it on one"
            " machine, without --cluster"
        )
        raise LabError(f"upstream {found[0]!r}: {message}")


def check_link(environment: Mapping[str, str], links: Collection[Link]) -> None:
    """Raise LabError for a link that is not that of the stack: its container emulates
    only one.
    """
    own = link_of_stack(environment)
    if other := next((link for link in links if link != own), None):
        has = f"emulates {own}" if own else "has no link"
        raise LabError(
            f"a link of {other}, and the stack {has}; start it with LINK_RTT (and"
            " LINK_BANDWIDTH) and --profile link, or measure on one machine, without"
            " --cluster"
        )
