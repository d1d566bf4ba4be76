"""Time to the first and to the last byte, on new and kept connections, against arithmetic."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Sequence
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
_OWN_ROUNDS = 15
_BUFFER = bytearray(1 << 20)
LEAST_TOLERANCE, TOLERANCE = 1e-3, 0.02
"""Seconds, and a share of the computed time; the larger one counts."""


@dataclass(frozen=True)
class Times:
    """Seconds from the start of `connect()`, or of the request on a kept connection."""

    first: float
    last: float


@dataclass(frozen=True)
class Own:
    """What the machine takes: seconds of a small exchange without a link, and bytes per second of a relay.

    The rate is that of a link of 0 ms, which copies all bytes once more, but delays none.
    """

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
    opening = OPENING[name] * rtt
    for label, size in SIZES.items():
        pairs = [_pair(place, size) for _ in range(rounds)]
        if size == _SMALL:  # a TLS record of a large body exceeds the first flight
            firsts = [new.first for new, _ in pairs]
            yield _row(f"{name}, {rtt * 1e3:g} ms, first byte on a new connection", firsts, opening + rtt + own.new)
        computed = opening + response_seconds(size, rtt, rate=own.rate) + own.new
        yield _row(f"{name}, {rtt * 1e3:g} ms, {label}, new connection", [new.last for new, _ in pairs], computed)
        computed = response_seconds(size, rtt, window_after(size, window_after(size)), own.rate) + own.kept
        yield _row(f"{name}, {rtt * 1e3:g} ms, {label}, kept connection", [kept.last for _, kept in pairs], computed)


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
    new, kept = (_median(pairs) for pairs in zip(*(_pair(place, _SMALL) for _ in range(_OWN_ROUNDS)), strict=True))
    with link_before(Link(0.0), place.port) as link:
        small, large = ([_pair(place.behind(link), size)[1] for _ in range(_OWN_ROUNDS)] for size in (_SMALL, _LARGE))
    return Own(new, kept, (_LARGE - _SMALL) / (_median(large) - _median(small)))


def _median(found: Sequence[Times]) -> float:
    return median(times.last for times in found)


def _pair(place: Destination, size: int) -> tuple[Times, Times]:
    """The body on a new connection, and the third one on the same.

    The second one is left out: whether it takes one flight or two depends on the last bytes of the first.
    """
    began = perf_counter()
    with socket.create_connection((LOOPBACK, place.port)) as plain:
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if place.context is None:
            return _new_and_kept(plain, size, began)
        with place.context.wrap_socket(plain, server_hostname=LOOPBACK) as secured:
            return _new_and_kept(secured, size, began)


def _new_and_kept(connection: socket.socket, size: int, began: float) -> tuple[Times, Times]:
    new = _exchange(connection, size, began)
    _exchange(connection, size, perf_counter())
    return new, _exchange(connection, size, perf_counter())


def _exchange(connection: socket.socket, size: int, began: float) -> Times:
    """Raises SystemExit where the connection ends before."""
    connection.sendall(b"%d\n" % size)
    got = received = connection.recv_into(_BUFFER)
    first = perf_counter() - began
    while received < size and got:
        received += (got := connection.recv_into(_BUFFER))
    if received != size:
        raise SystemExit(f"the connection ended after {received:,} of {size:,} bytes")
    return Times(first, perf_counter() - began)
