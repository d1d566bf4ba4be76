"""Time to the first and to the last byte, on new and kept connections, against arithmetic."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median
from time import perf_counter

from benchmarks.figures import BenchmarkRow
from benchmarks.link.arithmetic import OPENING, response_seconds, window_after
from benchmarks.link.places import LOOPBACK, Destination, link_before, servers
from clientlab.workload.link import Link

RTTS = (0.005, 0.035, 0.1)
SIZES = {"10 kB": 10_000, "1 MB": 1_000_000, "10 MB": 10_000_000}
_SMALL, _LARGE = SIZES["10 kB"], SIZES["10 MB"]
_WITH_BANDWIDTH = Link(0.035, 20e6)
_NO_LINK_ROUNDS = 15
LEAST_TOLERANCE, TOLERANCE = 1e-3, 0.02
"""Seconds, and a share of the computed time; the larger one counts."""


@dataclass(frozen=True)
class Times:
    """Seconds from the start of `connect()`, or of the request on a kept connection."""

    first: float
    last: float


@dataclass(frozen=True)
class Own:
    """What client, server and loopback take without a link: seconds of a small exchange, and bytes per second."""

    new: float
    kept: float
    rate: float


def rows(rounds: int) -> Iterator[BenchmarkRow]:
    """For each security, round-trip time and size."""
    with servers() as places:
        for name, place in places.items():
            own = _own(place)
            for rtt in RTTS:
                with link_before(Link(rtt), place.port) as link:
                    yield from _transfers(name, rtt, place.behind(link), own, rounds)
        yield from _bandwidth(places["plain"], rounds)


def _transfers(name: str, rtt: float, place: Destination, own: Own, rounds: int) -> Iterator[BenchmarkRow]:
    firsts = []
    for label, size in SIZES.items():
        pairs = [_pair(place, size) for _ in range(rounds)]
        firsts += [new.first for new, _ in pairs]
        opening = OPENING[name] * rtt
        computed = opening + response_seconds(size, rtt, rate=own.rate) + own.new
        yield _row(f"{name}, {rtt * 1e3:g} ms, {label}, new connection", [new.last for new, _ in pairs], computed)
        computed = response_seconds(size, rtt, window_after(size), own.rate) + own.kept
        yield _row(f"{name}, {rtt * 1e3:g} ms, {label}, kept connection", [kept.last for _, kept in pairs], computed)
    yield _row(f"{name}, {rtt * 1e3:g} ms, first byte on a new connection", firsts, opening + rtt + own.new)


def _bandwidth(place: Destination, rounds: int) -> Iterator[BenchmarkRow]:
    """The bytes that the bandwidth permits are fewer than those of slow start after three round trips."""
    own, rate = _own(place), (_WITH_BANDWIDTH.bandwidth or 0) / 8
    with link_before(_WITH_BANDWIDTH, place.port) as link:
        for label in ("10 kB", "1 MB"):
            pairs = [_pair(place.behind(link), SIZES[label]) for _ in range(rounds)]
            rtt = _WITH_BANDWIDTH.rtt
            computed = rtt + response_seconds(SIZES[label], rtt, rate=rate) + own.new
            yield _row(f"plain, {_WITH_BANDWIDTH}, {label}, new connection", [new.last for new, _ in pairs], computed)


def _row(name: str, measured: list[float], computed: float) -> BenchmarkRow:
    errors = [seconds - computed for seconds in measured]
    limit = max(LEAST_TOLERANCE, TOLERANCE * computed)
    return BenchmarkRow(
        f"{name}: {median(measured) * 1e3:.2f} ms, computed {computed * 1e3:.2f} ms, error",
        median(errors) * 1e3, min(errors) * 1e3, max(errors) * 1e3, f"range of {len(errors)}",
        f"within {limit * 1e3:.2f}", abs(median(errors)) <= limit, "ms",
    )  # fmt: skip


def _own(place: Destination) -> Own:
    """Without a link, where slow start takes no time."""
    small, large = ([_pair(place, size) for _ in range(_NO_LINK_ROUNDS)] for size in (_SMALL, _LARGE))
    new, kept = (median(times.last for times in side) for side in zip(*small, strict=True))
    body = median(times.last for _, times in large) - kept
    return Own(new, kept, (_LARGE - _SMALL) / body)


def _pair(place: Destination, size: int) -> tuple[Times, Times]:
    """The body on a new connection, and at once again on the same."""
    began = perf_counter()
    with socket.create_connection((LOOPBACK, place.port)) as plain:
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if place.context is None:
            return _exchange(plain, size, began), _exchange(plain, size, perf_counter())
        with place.context.wrap_socket(plain, server_hostname=LOOPBACK) as secured:
            return _exchange(secured, size, began), _exchange(secured, size, perf_counter())


def _exchange(connection: socket.socket, size: int, began: float) -> Times:
    """Raises SystemExit where the connection ends before."""
    buffer = bytearray(1 << 20)
    connection.sendall(b"%d\n" % size)
    got = received = connection.recv_into(buffer)
    first = perf_counter() - began
    while received < size and got:
        received += (got := connection.recv_into(buffer))
    if received != size:
        raise SystemExit(f"the connection ended after {received:,} of {size:,} bytes")
    return Times(first, perf_counter() - began)
