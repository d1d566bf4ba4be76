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
from typing import NamedTuple

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


class RunningServers(NamedTuple):
    """The servers of a run, which are running."""

    testbed: Testbed
    links: Mapping[Link, Testbed]
    """The testbed behind each link."""

    programs: dict[str, str]
    """How the servers are served, for the run's surroundings."""


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
        external = None
        if target.urls:
            external = ExternalServers(target.urls, target.ca_file, permits_public)
        return cls(target, external)

    def check(self, plan: Plan) -> float:
        """Return the seconds that the slowest server of the user took to answer.

        They are 0 for the lab's own upstreams. Raise LabError if the plan cannot be
        measured on the servers.
        """
        if self.external is not None:
            return self._probe(self.external, plan)
        check_upstreams({(arm.upstream, arm.route) for arm in plan.arms})
        if self.target.testbed == "compose":
            check_plain({arm.upstream for arm in plan.arms})
            check_link(os.environ, plan.links)
        return 0.0

    def _probe(self, servers: ExternalServers, plan: Plan) -> float:
        if plan.links:
            for server in servers.values():
                server.check_link()
        workloads = {
            (arm.target[0], arm.group): plan.workloads[arm.workload]
            for arm in plan.arms
        }
        longest = 0.0
        for (name, _), workload in workloads.items():
            began = time.perf_counter()
            try:
                servers[name].probe(workload)
            except FieldError as error:
                if name in self.target.servers:
                    raise error.within("servers", name) from error
                raise
            longest = max(longest, time.perf_counter() - began)
        return longest

    def placement(self, plan: Plan) -> Placement | None:
        """Return the CPUs of each part, or None if the plan pins none.

        Raise FieldError if they cannot be pinned.
        """
        if not plan.pin:
            return None
        if self.target.testbed != "local":
            raise FieldError(
                ["pin"],
                "the lab cannot place a server that it did not start; leave it out",
                also=["cluster" if self.external is None else "url"],
            )
        return place_here(proxied=any(arm.route != "direct" for arm in plan.arms))

    def open(
        self,
        plan: Plan,
        placement: Placement | None,
        logs: Path,
        stack: contextlib.ExitStack,
        trace: Path | None = None,
    ) -> RunningServers:
        """Start the servers and links of a plan, which `stack` stops.

        `trace`: a folder in which upstreams log their handlers.
        """
        testbed: LocalTestbed | ExternalServers
        programs: dict[str, str] = {}
        cpus = placement.upstream if placement else ()
        if self.external is not None:
            testbed = self.external
        else:
            workers = choose_workers(find_most_in_flight(plan), cpus)
            local = LocalTestbed(
                {arm.upstream for arm in plan.arms},
                {arm.route for arm in plan.arms},
                logs,
                replace(workers, **plan.workers),
                placement=placement,
                trace=trace,
            )
            testbed = stack.enter_context(local)
            programs = testbed.programs()
        links: dict[Link, Testbed] = {}
        for link in plan.links:
            process = LinkProcess(link, testbed.targets(), logs, cpus)
            links[link] = LinkedTestbed(testbed, stack.enter_context(process))
        return RunningServers(testbed, links, programs)
