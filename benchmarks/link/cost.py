"""What the link costs: CPU time beside the upstream, throughput beside Caddy, and what the client notices."""

from __future__ import annotations

import http.client
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from statistics import median
from time import perf_counter

from benchmarks.drivers import IN_FLIGHT, SECONDS, driven, say_left_out
from benchmarks.figures import BenchmarkRow, at_least, at_most, ratio
from benchmarks.link.places import LOOPBACK, link_before
from benchmarks.servers import cpu_seconds_with_workers
from benchmarks.trials import Site, outcome_of
from benchmarks.upstream import BenchServer, upstream
from clientlab.generators import programs
from clientlab.generators.commands import Wrk
from clientlab.generators.generator_interface import GeneratorLoad
from clientlab.measuring.usage import cpu_seconds_of
from clientlab.testbeds.linked import LinkProcess
from clientlab.testbeds.local import LocalTestbed
from clientlab.testbeds.server_process import workers_for
from clientlab.workload.link import Link
from clientlab.workload.workload import Request, Workload

_LOADS = ((0.0, IN_FLIGHT), (0.005, 8 * IN_FLIGHT))
"""Round-trip time, and requests in flight: enough that the round trips are not the limit."""
CPU_LIMIT, LATENCY_LIMIT, CLIENT_LIMIT = 0.6, 1.3, 1.03
_BODY = 10_000_000
_BODIES = 40
_GBIT, _GBIT_TO_REACH = 1e9 / 8, 2.0
_REQUESTS = 2_000
_CLIENTS = ("urllib3", "aiohttp@workers")


def rows(rounds: int) -> Iterator[BenchmarkRow]:
    """CPU per request at 0 and 5 ms, latency without delay, the client's CPU, and Gbit/s."""
    with upstream(1) as served:
        for rtt, in_flight in _LOADS:
            with link_before(Link(rtt), served.port) as link:
                yield from _cpu(served, link, f"link of {rtt * 1e3:g} ms, c={in_flight}", in_flight, rounds)
        with link_before(Link(0.0), served.port) as link:
            through = Site(_url(link.port_of((LOOPBACK, served.port))))
            for strategy in _CLIENTS:
                yield from _noticed(strategy, Site(f"{served.url}/"), through, rounds)
    yield from _throughput(rounds)


def _url(port: int) -> str:
    return f"http://{LOOPBACK}:{port}/"


def _cpu(served: BenchServer, link: LinkProcess, name: str, in_flight: int, rounds: int) -> Iterator[BenchmarkRow]:
    """CPU time of the link for a request over that of the upstream, in the same load."""
    load = GeneratorLoad(Request("GET", _url(link.port_of((LOOPBACK, served.port))), {}, None), in_flight, SECONDS)
    generator = programs.fastest(load)
    if generator is None:
        say_left_out("the link's CPU time", f"no load generator is installed; {Wrk.install}")
        return
    ratios, each, rates = [], [], []
    for _ in range(rounds):
        before = cpu_seconds_of(link.pid) or 0.0, cpu_seconds_with_workers(served.pid)
        sent = driven(generator, load)
        spent = (cpu_seconds_of(link.pid) or 0.0) - before[0]
        ratios.append(spent / (cpu_seconds_with_workers(served.pid) - before[1]))
        each.append(spent / sent.requests)
        rates.append(sent.rate)
    about = f"{median(each) * 1e6:.1f} µs of CPU each, {median(rates):,.0f} req/s, {generator.name}"
    yield at_most(f"{name}, over the aiohttp upstream, CPU per request: {about}", ratios, CPU_LIMIT)


def _noticed(strategy: str, direct: Site, through: Site, rounds: int) -> Iterator[BenchmarkRow]:
    """Latency and CPU of a client behind a link of 0 ms over those without it, trial by trial."""
    workload = Workload(requests=_REQUESTS)
    latencies, cpus = [], []
    for number in range(rounds):
        order = [direct, through] if number % 2 else [through, direct]
        found = {site.url: outcome_of(strategy, site, workload) for site in order}
        behind, without = found[through.url], found[direct.url]
        latencies.append(behind.wall_seconds / without.wall_seconds)
        cpus.append(behind.cpu_seconds / without.cpu_seconds)
    yield at_most(f"{strategy}, c=1, link of 0 ms over no link: seconds per request", latencies, LATENCY_LIMIT)
    yield at_most(f"{strategy}, c=1, link of 0 ms over no link: CPU of the client", cpus, CLIENT_LIMIT)


def _throughput(rounds: int) -> Iterator[BenchmarkRow]:
    """Bodies of 10 MB one after the other, on one connection: by the link, by Caddy, and direct."""
    with tempfile.TemporaryDirectory() as folder:
        testbed = LocalTestbed(["aiohttp"], ["direct", "proxy"], Path(folder), workers_for(IN_FLIGHT))
        with testbed:
            direct, proxy = (testbed.endpoint("aiohttp", route).port for route in ("direct", "proxy"))
            with link_before(Link(0.0), direct) as none, link_before(Link(0.005), direct) as short:
                ports = {
                    "direct": direct,
                    "by Caddy": proxy,
                    "by a link of 0 ms": none.port_of((LOOPBACK, direct)),
                    "by a link of 5 ms": short.port_of((LOOPBACK, direct)),
                }
                rates = {name: [_gigabits(port) for _ in range(rounds)] for name, port in ports.items()}
    for name, found in rates.items():
        make: Callable[..., BenchmarkRow] = at_least if "link" in name else ratio
        limit = (_GBIT_TO_REACH,) if "link" in name else ()
        row = make(f"bodies of 10 MB, {name}, {os.cpu_count()} CPUs", found, *limit)
        yield BenchmarkRow(row.name, row.value, row.low, row.high, row.spread, row.target, row.met, "Gbit/s")


def _gigabits(port: int) -> float:
    """Raises SystemExit where a body is not whole."""
    buffer = bytearray(1 << 20)
    with closing(http.client.HTTPConnection(LOOPBACK, port)) as connection:
        began = perf_counter()
        for _ in range(_BODIES):
            connection.request("GET", f"/bytes/{_BODY}")
            response = connection.getresponse()
            received = 0
            while got := response.readinto(buffer):
                received += got
            if received != _BODY:
                raise SystemExit(f"a body of {received:,} bytes in place of {_BODY:,}")
        return _BODIES * _BODY / (perf_counter() - began) / _GBIT
