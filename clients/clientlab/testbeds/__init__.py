"""Testbeds: local processes, the Compose stack, or the user's own servers.

A trial runs against one of them.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from clientlab.errors import FieldError
from clientlab.results.plan import Plan, Target
from clientlab.results.trial import Placement
from clientlab.running.schedule import find_most_in_flight
from clientlab.running.trial_runner import Testbed
from clientlab.testbeds.compose import check_link, check_plain
from clientlab.testbeds.external import ExternalServers
from clientlab.testbeds.linked import LinkedTestbed, LinkProcess
from clientlab.testbeds.local import LocalTestbed, check_upstreams, place_here
from clientlab.testbeds.servers import choose_workers
from clientlab.workload.values import Link


@dataclass(frozen=True)
class Servers:
    """The servers that a run measures.

    `external`: the user's own servers; None for the lab's own upstreams.
    """

    target: Target
    external: ExternalServers | None

    @classmethod
    def of(
        cls, target: Target, permits_public: Callable[[Sequence[str]], bool]
    ) -> Servers:
        """Return the servers of a target.

        `permits_public`: as for `ExternalTarget`. Raise FieldError.
        """
        external = (
            ExternalServers(target.urls, target.ca_file, permits_public)
            if target.urls
            else None
        )
        return cls(target, external)

    def check(self, plan: Plan) -> float:
        """Return how long the slowest server of the user took to answer, in seconds; 0
        for the lab's own upstreams.

        Raise LabError if the plan cannot be measured on them.
        """
        longest = 0.0
        if self.external is not None:
            for server in self.external.values() if plan.links else ():
                server.check_link()
            workloads = {
                (arm.target[0], arm.group): plan.workloads[arm.workload]
                for arm in plan.arms
            }
            for (name, _), workload in workloads.items():
                began = time.perf_counter()
                try:
                    self.external[name].probe(workload)
                except FieldError as error:
                    if name in self.target.servers:
                        raise error.within("servers", name) from error
                    raise
                longest = max(longest, time.perf_counter() - began)
            return longest
        check_upstreams({(arm.upstream, arm.route) for arm in plan.arms})
        if self.target.testbed == "compose":
            check_plain({arm.upstream for arm in plan.arms})
            check_link(os.environ, plan.links)
        return longest

    def placement(self, plan: Plan) -> Placement | None:
        """Return the CPUs of each part; None if the plan pins none.

        Raise FieldError if they cannot be pinned.
        """
        if not plan.pin:
            return None
        if self.target.testbed != "local":
            message = (
                "the lab cannot place a server that it did not start; leave it out"
            )
            raise FieldError(
                ["pin"], message, also=["cluster" if self.external is None else "url"]
            )
        return place_here(proxied=any(arm.route != "direct" for arm in plan.arms))

    def open(
        self,
        plan: Plan,
        placement: Placement | None,
        logs: Path,
        stack: contextlib.ExitStack,
        trace: Path | None = None,
    ) -> tuple[Testbed, Mapping[Link, Testbed], dict[str, str]]:
        """Return the testbed, the testbed behind each link, and how the servers are
        served.

        `stack` stops them. `trace`: a folder in which upstreams log their handlers.
        """
        testbed: LocalTestbed | ExternalServers
        cpus = placement.upstream if placement else ()
        if self.external is not None:
            testbed, programs = self.external, dict[str, str]()
        else:
            workers = replace(
                choose_workers(find_most_in_flight(plan), cpus), **plan.workers
            )
            upstreams, routes = (
                {arm.upstream for arm in plan.arms},
                {arm.route for arm in plan.arms},
            )
            testbed = stack.enter_context(
                LocalTestbed(
                    upstreams,
                    routes,
                    logs,
                    workers,
                    placement=placement,
                    trace=trace,
                )
            )
            programs = testbed.programs()
        links: dict[Link, Testbed] = {}
        for link in plan.links:
            process = stack.enter_context(
                LinkProcess(link, testbed.targets(), logs, cpus)
            )
            links[link] = LinkedTestbed(testbed, process)
        return testbed, links, programs
