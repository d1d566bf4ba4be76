"""A full buffer: bandwidth, wait and fairness of many connections, against arithmetic and against the kernel's `tbf`.

What is to be reached. The figures of the link alone were written down before they were measured; the 3 % of the
sawtooth and the bands around the kernel after first trials had been seen.

- One sender uses the share of the bandwidth that the sawtooth of its window permits, within 3 %.
- With a buffer of one bandwidth-delay product, 10 and 100 connections use at least 95 %. A small exchange beside them
  takes no longer than the round trip and the time of a full buffer, at the median, and 2 ms.
- The kernel's TCP through `tbf` has a throughput within 10 % of that, and a median wait that differs by no more than a
  third of the time of a full buffer.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence

from benchmarks.figures import BenchmarkRow
from benchmarks.link.arithmetic import sawtooth
from benchmarks.link.kernel_path import HOST, kernel_path, why_not
from benchmarks.link.places import LOOPBACK, link_before, server
from benchmarks.link.received import Received
from clientlab.workload.link import Link, link_of

_RTT, _BANDWIDTH = 0.05, 20e6
_PRODUCT = _RTT * _BANDWIDTH / 8
_FULL = Link(_RTT, _BANDWIDTH, int(_PRODUCT))
_SHARES = (0.25, 0.5)
_CONNECTIONS = (1, 10, 100)
_SETTLE, _SECONDS = 5.0, 20.0
_OF_SAWTOOTH, _LEAST, _LATE, _OF_KERNEL, _OF_WAIT = 0.03, 0.95, 2e-3, 0.1, 1 / 3


def rows() -> Iterator[BenchmarkRow]:
    """One sender by its sawtooth, many connections, and all of them beside those of the kernel."""
    for share in _SHARES:
        found = _through_link(Link(_RTT, _BANDWIDTH, int(share * _PRODUCT)), 1)
        yield _used(f"1 connection, buffer of {share:g} products", found, sawtooth(share), _OF_SAWTOOTH)
    assert link_of(_RTT, _BANDWIDTH) == _FULL  # noqa: S101 - the default buffer is one product
    measured = {count: _through_link(_FULL, count) for count in _CONNECTIONS}
    for count, found in measured.items():
        yield from _of_full_buffer(f"{_connections(count)}, {_FULL}", found)
    if (reason := why_not()) is not None:
        print(f"the link beside tbf is left out: {reason}", file=sys.stderr)
        return
    for count, found in measured.items():
        yield from _beside(f"{_connections(count)}, {_FULL}, beside tbf", found, _through_kernel(_FULL, count))


def _through_link(link: Link, connections: int) -> Received:
    with server() as port, link_before(link, port) as process:
        return _bulk([], LOOPBACK, process.port_of((LOOPBACK, port)), connections)


def _through_kernel(link: Link, connections: int) -> Received:
    with kernel_path(link) as path, server(host=HOST, prefix=path.far) as port:
        return _bulk(path.near, HOST, port, connections)


def _bulk(prefix: Sequence[str], host: str, port: int, connections: int) -> Received:
    numbers = map(str, (port, connections, _SETTLE, _SECONDS))
    command = [*prefix, sys.executable, "-m", "benchmarks.link.bulk", host, *numbers]
    return Received(**json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout))


def _used(name: str, found: Received, computed: float, within: float) -> BenchmarkRow:
    used = found.bits_per_second / _BANDWIDTH
    about = f"{name}: share of the bandwidth, computed {computed:.3f}"
    return _row(about, used, f"within {within:g}", met=abs(used - computed) <= within)


def _of_full_buffer(name: str, found: Received) -> Iterator[BenchmarkRow]:
    used, longest = found.bits_per_second / _BANDWIDTH, (2 * _RTT + _LATE) * 1e3
    yield _row(f"{name}: share of the bandwidth", used, f">= {_LEAST:g}", met=used >= _LEAST)
    exchange = found.exchange * 1e3
    yield _row(f"{name}: exchange, p50", exchange, f"<= {longest:g}", unit="ms", met=exchange <= longest)
    yield _row(f"{name}: Jain's index of fairness", found.fairness, "none", met=True)


def _beside(name: str, link: Received, kernel: Received) -> Iterator[BenchmarkRow]:
    ratio = link.bits_per_second / kernel.bits_per_second
    about = f"{name}, {kernel.bits_per_second / 1e6:.1f} Mbit/s: throughput"
    yield _row(about, ratio, f"within {_OF_KERNEL:g}", met=abs(ratio - 1) <= _OF_KERNEL)
    apart, limit = (link.exchange - kernel.exchange) * 1e3, _OF_WAIT * _RTT * 1e3
    about = f"{name}, {kernel.exchange * 1e3:.1f} ms and {kernel.fairness:.2f} fair: exchange, p50, difference"
    yield _row(about, apart, f"within {limit:.1f}", unit="ms", met=abs(apart) <= limit)


def _connections(count: int) -> str:
    return f"{count} connection{'s' if count > 1 else ''}"


def _row(name: str, value: float, target: str, *, met: bool, unit: str = "x") -> BenchmarkRow:
    return BenchmarkRow(name, value, value, value, "one trial", target, met, unit)
