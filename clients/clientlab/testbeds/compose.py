"""Compose testbed: the lab's own upstreams and proxy run in containers, at addresses of the environment."""

from __future__ import annotations

import socket
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO

from clientlab.errors import IncompleteRun, LabError, ServerLost
from clientlab.measuring.connections import Address
from clientlab.running.trial_result import Reading
from clientlab.testbeds.ca_bundle import ca_bundle
from clientlab.testbeds.local import ROUTES
from clientlab.testbeds.scrape import Endpoint, proxy_use, unhealthy, upstream_use
from clientlab.upstreams import UPSTREAMS, special
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

CA_FILE = "PROXY_CA_FILE"
"""Environment variable with the path of the proxy's CA (PEM), for the route with TLS."""

_SUFFIXES = dict(zip(ROUTES, ("ADDRESS", "ADDRESS", "TLS_ADDRESS"), strict=True))


class ComposeTestbed:
    """Upstreams and proxy at the addresses of the environment. Raises LabError for an invalid address.

    A host name is resolved once, off the clock: clients would otherwise ask the container network's name server for
    each connection, which is no part of the comparison. With TLS the name stays, because the certificate is for it.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._named = {name: _split(name, environment.get(name) or default) for name, default in ADDRESSES.items()}
        self._authority = environment.get(CA_FILE) or ""
        self._found: dict[str, Endpoint] = {}
        self._bundle: IO[str] | None = None

    def serve(self, upstream: str) -> None:
        """The containers are running. Raises ServerLost where that upstream does not answer a health check."""
        if trouble := unhealthy(self._at(_variable(upstream, "direct"))):
            raise ServerLost(trouble)

    def base_url(self, upstream: str, route: str) -> str:
        return self._endpoint(upstream, route).url

    def address(self, upstream: str, route: str) -> Address:
        return Address(self._named[_variable(upstream, route)][1])

    def ca_file(self, upstream: str, route: str) -> str | None:  # noqa: ARG002 - equal for both upstreams
        """A PEM file with the proxy's own CA and all CAs that libraries trust by default, as in the local testbed."""
        if route != "proxy-tls":
            return None
        if self._bundle is None:
            self._bundle = _bundled(self._authority)
        return self._bundle.name

    def reading(self, upstream: str, route: str) -> Reading:
        """The counters now. Raises IncompleteRun where a server does not answer."""
        use = upstream_use(self._at(_variable(upstream, "direct")))
        proxy = None if route == "direct" else proxy_use(self._at("PROXY_METRICS_ADDRESS"))
        return Reading(use, proxy)

    def check(self) -> None:
        """Nothing to do: the containers' processes are not ours."""

    def trouble(self, upstream: str, route: str, workload: Workload) -> str | None:  # noqa: ARG002 - not needed here
        """Why the upstream's health check fails, by itself or by the route; None where it is answered."""
        direct = unhealthy(self._at(_variable(upstream, "direct")))
        return direct or (None if route == "direct" else unhealthy(self._endpoint(upstream, route)))

    def programs(self) -> dict[str, str]:
        """The addresses of the servers, for the run's surroundings."""
        return {name.lower(): f"{name}={host}:{port}" for name, (host, port) in self._named.items()}

    def _endpoint(self, upstream: str, route: str) -> Endpoint:
        name, authority = _variable(upstream, route), self.ca_file(upstream, route)
        return self._at(name) if authority is None else Endpoint(*self._named[name], Path(authority))

    def _at(self, name: str) -> Endpoint:
        """The endpoint of a variable, with its IP address. Raises IncompleteRun where the name is not found."""
        if name not in self._found:
            host, port = self._named[name]
            try:
                peer = socket.getaddrinfo(host, port, socket.AF_INET, socket.SOCK_STREAM)[0][4]
            except (OSError, UnicodeError) as error:
                raise IncompleteRun(f"{name}={host}:{port}: the host is not found ({error})") from error
            self._found[name] = Endpoint(str(peer[0]), port)
        return self._found[name]


def check_plain(names: Iterable[str]) -> None:
    """Raises LabError for an upstream with settings: the containers have the settings with which they were started."""
    if found := special(names):
        raise LabError(
            f"upstream {found[0]!r}: the containers serve {', '.join(UPSTREAMS)} as they are; "
            "have servers with settings started by 'clientlab run' with --testbed local"
        )


def _variable(upstream: str, route: str) -> str:
    """The variable with the address. Raises LabError for an upstream or a route that the stack does not have."""
    if upstream not in UPSTREAMS or route not in ROUTES:
        raise LabError(
            f"upstream {upstream!r} by route {route!r} is not in the Compose stack "
            f"({', '.join(UPSTREAMS)}; {', '.join(ROUTES)})"
        )
    return f"{'' if route == 'direct' else 'PROXY_'}{upstream.upper()}_{_SUFFIXES[route]}"


def _bundled(authority: str) -> IO[str]:
    """A temporary PEM file with the proxy's CA and the default CAs, deleted when closed. Raises IncompleteRun."""
    try:
        own = Path(authority).read_text(encoding="ascii")
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise IncompleteRun(f"{CA_FILE}={authority!r}: {reason}; the route proxy-tls needs the proxy's CA") from error
    bundle = tempfile.NamedTemporaryFile("w", prefix="clientlab-ca-", suffix=".pem", encoding="utf-8")  # noqa: SIM115 - kept
    bundle.write(ca_bundle(own))
    bundle.flush()
    return bundle


def _split(name: str, text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        raise LabError(f"{name}={text!r} is no HOST:PORT; write it as {ADDRESSES[name]}")
    return host, int(port)
