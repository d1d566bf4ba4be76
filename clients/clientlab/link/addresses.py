"""Addresses on the command line of the link: ``HOST:PORT``, or ``[HOST]:PORT`` for IPv6."""

from __future__ import annotations

import re
import socket
from typing import Any

from clientlab.errors import LabError

HostPort = tuple[str, int]
"""Host and port."""

_ADDRESS = re.compile(r"(?:\[([^\[\]]+)\]|([^\[\]:]+)):(\d{1,5})", re.ASCII)


def parse(text: str) -> HostPort:
    """Host and port. Raises ValueError."""
    found = _ADDRESS.fullmatch(text)
    if found is None or int(found[3]) > 65_535:
        raise ValueError(f"{text!r} is not an address; write HOST:PORT, as 127.0.0.1:8000 or [::1]:8000")
    return found[1] or found[2], int(found[3])


def written(address: HostPort) -> str:
    """The address as `parse` reads it."""
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def resolve(address: HostPort) -> HostPort:
    """The numeric address of a host, IPv4 if it has one. Raises LabError.

    Once, at the start: to look a name up for each connection would take longer than many a link's round trip.
    """
    host, port = address
    found = _look_up(host, port)
    chosen = next((one for one in found if one[0] == socket.AF_INET), found[0])
    return str(chosen[4][0]), port


def bind(address: HostPort) -> socket.socket:
    """A bound socket; port 0 takes any free one. Raises LabError."""
    host, port = address
    family, _, _, _, numeric = _look_up(host, port)[0]
    listener = socket.socket(family, socket.SOCK_STREAM)
    # Connections of a link that was there before may still be closing.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(numeric)
    except OSError as error:
        listener.close()
        raise LabError(f"port {port} of {host}: {error.strerror}; name another or stop what listens there") from error
    return listener


def _look_up(host: str, port: int) -> list[tuple[Any, ...]]:
    """The numeric addresses of a host. Raises LabError."""
    try:
        return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:  # the latter for a name that DNS cannot have
        raise LabError(f"host {host!r} has no address: {error}; check its name") from error
