"""The ceilings of a plan's servers: the most requests per second that each answers, measured before the first round.

The fastest load generator that is installed sends the request of a workload, without its delay: with a delay of d
seconds and c requests in flight, no more than c / d requests per second are possible whatever the server can do, and
the share `latency` of a trial shows that limit by itself. If no generator is installed, or if requests of the workload
differ, a fast strategy of the lab sends them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from clientlab import strategies
from clientlab.errors import ServerLost
from clientlab.generators import programs
from clientlab.generators.generator_interface import GeneratorLoad
from clientlab.judging.verdict import Shares, busy, verdict
from clientlab.measuring.context import TrialContext
from clientlab.measuring.measurement import measure
from clientlab.measuring.trial_handle import TrialFailed
from clientlab.redaction import mask_text
from clientlab.results.bottleneck import Bound
from clientlab.results.document import Ceiling, Placement
from clientlab.results.plan import Plan
from clientlab.results.server_counters import ServerCounters
from clientlab.results.surroundings import cpu_usable
from clientlab.results.trial import PlannedTrial
from clientlab.running.busy_shares import client_cores, server_shares
from clientlab.running.testbed import Testbed
from clientlab.workload.load import expected_requests
from clientlab.workload.making import requests_of
from clientlab.workload.workload import Workload, varies

Http = Literal["1.1", "2"]

SECONDS = 2
"""Length of each measurement. All generators can take whole seconds."""

FEWEST_CONNECTIONS, MOST_CONNECTIONS = 32, 256
"""With fewer, the round trips limit the rate; more connections make no server faster."""

STRATEGIES: dict[Http, tuple[str, ...]] = {
    "1.1": ("pycurl@multi", "aiohttp@workers", "http.client@threads"),
    "2": ("punkreq-h2@workers", "pycurl-h2@threads", "httpx-async-h2@workers"),
}
"""Version of HTTP → strategies that measure ceilings where no generator can, the fastest first."""

_NOT_OF_THE_REQUEST: dict[str, Any] = {
    "delay": None, "requests": None, "duration": float(SECONDS), "rate": None, "stages": None, "arrivals": "uniform",
    "max_late": None, "concurrency": None, "shards": 1, "deadline": None, "parse": False, "elapsed": False,
    "read": "whole", "upload": "whole", "encode": "once", "connections": "cold", "warmup": 10,
}  # fmt: skip
"""Fields of a workload that do not change what the server gets, or what it answers, with their values here."""


@dataclass
class CeilingTarget:
    """A server with one request. `workload`: closed, for a duration, and without delay. `arms`: their names."""

    upstream: str
    route: str
    http: Http
    workload: Workload
    arms: list[str]
    connections: int
    delayed: bool

    @property
    def place(self) -> tuple[str, str, Http]:
        """Upstream, route and version of HTTP."""
        return self.upstream, self.route, self.http


@dataclass(frozen=True)
class _Sent:
    """What a generator sent. `seconds` and `cpu_seconds`: of the generator. `cores`: those that it can use."""

    generator: str
    version: str | None
    succeeded: int
    failed: int
    seconds: float
    cpu_seconds: float
    cores: float
    servers: ServerCounters


def targets_of(plan: Plan) -> list[CeilingTarget]:
    """Each upstream, route, version of HTTP and request of the plan once, in the order of its arms."""
    found: list[CeilingTarget] = []
    for arm in plan.arms:
        given, strategy = plan.workloads[arm.workload], strategies.find(arm.strategy)
        workload = replace(given, **_NOT_OF_THE_REQUEST)
        in_flight = strategy.in_flight(given.concurrency, expected_requests(given))
        many = min(max(in_flight, FEWEST_CONNECTIONS), MOST_CONNECTIONS)
        place = (arm.upstream, arm.route, strategies.client_spec(strategy.client).http)
        same = next((one for one in found if (one.place, one.workload) == (place, workload)), None)
        if same is None:
            found.append(same := CeilingTarget(*place, workload, [], many, delayed=False))
        same.arms.append(arm.name)
        same.connections, same.delayed = max(same.connections, many), same.delayed or given.delay is not None
    return found


def measured_ceilings(
    plan: Plan, testbed: Testbed, announce: Callable[[str], None], placement: Placement | None = None
) -> list[Ceiling]:
    """The ceiling of each target. `announce` takes a line before each measurement, which takes about `SECONDS`.

    `placement`: the CPUs of each part; the generator gets those of the client. A ceiling that cannot be measured holds
    the reason. Raises IncompleteRun where a server does not start.
    """
    found, cpus = [], placement.client if placement else []
    for target in targets_of(plan):
        announce(f"ceiling of {target.upstream}, {target.route}: {SECONDS} s with {target.connections} connections")
        try:
            testbed.serve(target.upstream)
            sent = _by_program(target, testbed, cpus) or _by_strategy(target, testbed, cpus)
        except (programs.GeneratorFailed, TrialFailed, ServerLost) as failure:
            found.append(_unmeasured(target, mask_text(str(failure))))
        else:
            found.append(_ceiling(target, sent, placement))
    return found


def _by_program(target: CeilingTarget, testbed: Testbed, cpus: Collection[int]) -> _Sent | None:
    """By the fastest generator that is installed; None if none can send the requests of the workload."""
    if varies(target.workload):
        return None
    where = target.upstream, target.route
    request = requests_of(target.workload, testbed.base_url(*where))(0)
    load = GeneratorLoad(request, target.connections, SECONDS, target.http, testbed.ca_file(*where))
    generator = programs.fastest(load)
    if generator is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        before = testbed.reading(*where)
        driven = programs.drive(generator, load, Path(folder), cpus)
        servers = testbed.reading(*where).since(before)
    usable = _usable(cpus)
    version, report, cores = programs.version_of(generator), driven.report, min(generator.cores or usable, usable)
    return _Sent(
        generator.name, version, report.succeeded, report.failed, report.seconds, driven.cpu_seconds, cores, servers
    )


def _by_strategy(target: CeilingTarget, testbed: Testbed, cpus: Collection[int]) -> _Sent:
    """By the first strategy that is installed. Raises TrialFailed."""
    name, where = _strategy_for(target), (target.upstream, target.route)
    workload = replace(target.workload, concurrency=target.connections)
    readings: list[ServerCounters] = []

    def read() -> None:
        readings.append(testbed.reading(*where))

    with tempfile.TemporaryDirectory() as folder:
        found = measure(
            TrialContext(
                strategies.find(name), workload, testbed.base_url(*where), folder, testbed.address(*where),
                testbed.ca_file(*where),
            ),
            on_start=read, on_end=read, cpus=cpus,
        )  # fmt: skip
    outcome, failed = found.outcome, sum(found.samples.errors.values())
    planned = PlannedTrial(
        arm=name, strategy=name, upstream=where[0], route=where[1], workload=target.arms[0], round=1, order=0,
        concurrency=target.connections,
    )  # fmt: skip
    cores, succeeded = client_cores(planned, outcome, _usable(cpus)), len(found.samples.records) - failed
    return _Sent(
        name, None, succeeded, failed, outcome.wall_seconds, outcome.cpu_seconds, cores, readings[1].since(readings[0])
    )


def _usable(cpus: Collection[int]) -> float:
    """Cores that the generator may use. `cpus`: those to which it is pinned."""
    return min(len(cpus) or cpu_usable(), cpu_usable())


def _strategy_for(target: CeilingTarget) -> str:
    """The first strategy that is installed. Raises TrialFailed if none is."""
    names = STRATEGIES[target.http]
    for name in names:
        if strategies.unavailable(strategies.find(name)) is None:
            return name
    raise TrialFailed(f"no load generator is installed, and none of {', '.join(names)}")


def _unmeasured(target: CeilingTarget, reason: str) -> Ceiling:
    return Ceiling(
        upstream=target.upstream,
        route=target.route,
        arms=target.arms,
        http=target.http,
        connections=target.connections,
        without_delay=target.delayed,
        reason=reason,
    )


def _ceiling(target: CeilingTarget, sent: _Sent, placement: Placement | None) -> Ceiling:
    """The rate, and what limited it; without both where no request succeeded."""
    return Ceiling(
        upstream=target.upstream,
        route=target.route,
        arms=target.arms,
        http=target.http,
        connections=target.connections,
        without_delay=target.delayed,
        generator=sent.generator,
        version=sent.version,
        requests=sent.succeeded,
        failed=sent.failed,
        seconds=sent.seconds,
        generator_cpu_seconds=sent.cpu_seconds,
        upstream_use=sent.servers.upstream,
        proxy_use=sent.servers.proxy,
        requests_per_second=sent.succeeded / sent.seconds if sent.succeeded else None,
        verdict=_limit_of(target, sent, placement) if sent.succeeded else None,
        reason=None if sent.succeeded else f"{sent.generator} got no response with a status below 400",
    )


def _limit_of(target: CeilingTarget, sent: _Sent, placement: Placement | None) -> Bound | None:
    """What limited the generator; None for a server without counters."""
    if sent.servers.upstream is None:
        return None
    many = target.connections
    proxy, upstream = server_shares(sent.servers.proxy, sent.servers.upstream, sent.seconds, many, placement)
    shares = Shares(client=busy(sent.cpu_seconds, sent.seconds, sent.cores), proxy=proxy, upstream=upstream)
    return verdict(shares, many)
