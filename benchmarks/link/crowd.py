"""Many connections: how late their bytes are, with 500 and with 10,000 of them."""

from __future__ import annotations

import resource
import selectors
import socket
import sys
from collections.abc import Iterator
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from benchmarks.figures import BenchmarkRow
from benchmarks.link.places import LOOPBACK, Destination, link_before, servers
from clientlab.measuring.usage import raise_descriptor_limit
from clientlab.workload.link import Link

FEW, MANY = 500, 10_000
_RATE, _SECONDS = 1_000, 10
_OTHER_FILES = 200
_ASKED = b"100\n"
_LIMITS = {50: 1e-3, 99: 2e-3}
"""Seconds by percentile."""


def rows() -> Iterator[BenchmarkRow]:
    """The error of each percentile: the time of an exchange less the round trip."""
    raise_descriptor_limit()
    most = (resource.getrlimit(resource.RLIMIT_NOFILE)[0] - _OTHER_FILES) // 2  # the link has two for each connection
    if most < MANY:
        print(f"link: {most:,} connections in place of {MANY:,}: raise the limit of open files", file=sys.stderr)
    with servers() as places:
        for rtt in (0.005, 0.035, 0.1):
            yield from _rows(places["plain"], rtt, FEW)
        yield from _rows(places["plain"], 0.1, min(MANY, most))


def _rows(place: Destination, rtt: float, connections: int) -> Iterator[BenchmarkRow]:
    with link_before(Link(rtt), place.port) as link:
        errors = exchanges(place.behind(link), connections, settle=1 + 2 * rtt) - rtt
    for percent, limit in _LIMITS.items():
        value = float(np.percentile(errors, percent))
        name = f"{connections:,} connections, {rtt * 1e3:g} ms, {_RATE:,} exchanges/s: error, p{percent}"
        yield BenchmarkRow(
            name, value * 1e3, errors.min() * 1e3, errors.max() * 1e3, f"range of {len(errors):,}",
            f"<= {limit * 1e3:g}", value <= limit, "ms",
        )  # fmt: skip


def exchanges(place: Destination, connections: int, settle: float) -> NDArray[np.float64]:
    """Seconds of each exchange. They begin at a constant rate, each connection in turn.

    `settle`: seconds before the first one, in which handshakes end.
    """
    total = _RATE * _SECONDS
    taken = np.zeros(total)
    with selectors.DefaultSelector() as selector:
        open_ones = [socket.create_connection((LOOPBACK, place.port)) for _ in range(connections)]
        began = perf_counter() + settle
        begun = done = 0
        for connection in open_ones:
            selector.register(connection, selectors.EVENT_READ, [])
        while done < total:
            now = perf_counter()
            while begun < total and began + begun / _RATE <= now:
                connection = open_ones[begun % connections]
                selector.get_key(connection).data.append((begun, perf_counter()))
                connection.send(_ASKED)
                begun += 1
            wait = began + begun / _RATE - now if begun < total else None
            for key, _ in selector.select(wait):
                received = len(key.fileobj.recv(1 << 16))  # type: ignore[union-attr]
                for _ in range(received // 100):
                    number, sent = key.data.pop(0)
                    taken[number] = perf_counter() - sent
                    done += 1
        for connection in open_ones:
            connection.close()
    return taken
