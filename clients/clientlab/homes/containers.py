"""The home of containers: upstreams and proxy run elsewhere under known addresses, and are the lab's own."""

from __future__ import annotations

import socket
from collections.abc import Mapping

from clientlab.errors import IncompleteRun, LabError
from clientlab.homes.local import ROUTES, UPSTREAMS
from clientlab.homes.metrics_page import Endpoint, proxy_use, upstream_use
from clientlab.measuring.connections import Address
from clientlab.runs.figures import Reading

ADDRESSES = {
    "FLASK_ADDRESS": "flask:8000",
    "AIOHTTP_ADDRESS": "aiohttp:8000",
    "PROXY_FLASK_ADDRESS": "proxy:9001",
    "PROXY_AIOHTTP_ADDRESS": "proxy:9002",
    "PROXY_METRICS_ADDRESS": "proxy:9003",
}
"""Variables of the environment that say where things listen, and what holds without them."""


class ContainerHome:
    """Where upstreams and proxy listen, by the environment. Raises LabError for an address that can't be read.

    A name is looked up when it is first needed, off the clock: a container network's name server is no
    part of what is compared, and would be asked for each connection.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._named = {name: _split(name, environment.get(name) or default) for name, default in ADDRESSES.items()}
        self._found: dict[str, Endpoint] = {}

    def base_url(self, upstream: str, route: str) -> str:
        return self._endpoint(upstream, route).url

    def address(self, upstream: str, route: str) -> Address:
        return Address(self._endpoint(upstream, route).port)

    def reading(self, upstream: str, route: str) -> Reading:
        """The counters now. Raises IncompleteRun where one does not answer."""
        use, workers = upstream_use(self._at(_variable(upstream, "direct")))
        proxy = None if route == "direct" else proxy_use(self._at("PROXY_METRICS_ADDRESS"))
        return Reading(use, proxy, workers)

    def programs(self) -> dict[str, str]:
        """What serves, for the run's surroundings."""
        return {name.lower(): f"{name}={host}:{port}" for name, (host, port) in self._named.items()}

    def _endpoint(self, upstream: str, route: str) -> Endpoint:
        return self._at(_variable(upstream, route))

    def _at(self, name: str) -> Endpoint:
        """The endpoint of a variable, its host as a number. Raises IncompleteRun where the name is not known."""
        if name not in self._found:
            host, port = self._named[name]
            try:
                peer = socket.getaddrinfo(host, port, socket.AF_INET, socket.SOCK_STREAM)[0][4]
            except (OSError, UnicodeError) as error:
                raise IncompleteRun(f"{name}={host}:{port}: the host is not found ({error})") from error
            self._found[name] = Endpoint(str(peer[0]), port)
        return self._found[name]


def _variable(upstream: str, route: str) -> str:
    """The variable that says where. Raises LabError for what containers do not have."""
    if upstream not in UPSTREAMS or route not in ROUTES:
        raise LabError(
            f"upstream {upstream!r} by route {route!r} is none of the containers' "
            f"({', '.join(UPSTREAMS)}; {', '.join(ROUTES)})"
        )
    return f"{upstream.upper()}_ADDRESS" if route == "direct" else f"PROXY_{upstream.upper()}_ADDRESS"


def _split(name: str, text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        raise LabError(f"{name}={text!r} is no HOST:PORT; write it as {ADDRESSES[name]}")
    return host, int(port)
