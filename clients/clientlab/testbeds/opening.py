"""The testbed of a run: checked against the plan, placed on CPUs and opened, as the run's target names it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from clientlab.errors import FieldError
from clientlab.results.document import Placement
from clientlab.results.plan import Plan
from clientlab.results.target import Target
from clientlab.running.due import most_in_flight
from clientlab.running.placement import placement_here
from clientlab.running.testbed import Testbed
from clientlab.testbeds.compose import check_link, check_plain
from clientlab.testbeds.external import ExternalTarget
from clientlab.testbeds.linked import Linkable, LinkedTestbed
from clientlab.testbeds.local import LocalTestbed, check_upstreams
from clientlab.testbeds.server_process import workers_for
from clientlab.workload.link import Link


@dataclass(frozen=True)
class Servers:
    """The servers that a run measures. `external`: the user's own server; None for the lab's own upstreams."""

    target: Target
    external: ExternalTarget | None

    @classmethod
    def of(cls, target: Target, permits_public: Callable[[Sequence[str]], bool]) -> Servers:
        """Return the servers of a target. `permits_public`: as for `ExternalTarget`. Raise FieldError."""
        if target.url is None:
            return cls(target, None)
        ca_file = None if target.ca_file is None else Path(target.ca_file)
        return cls(target, ExternalTarget(target.url, ca_file, permits_public))

    def check(self, plan: Plan) -> None:
        """Raise LabError if the plan cannot be measured on them."""
        if self.external is not None:
            if plan.links:
                self.external.check_link()
            for workload in {arm.group: plan.workloads[arm.workload] for arm in plan.arms}.values():
                self.external.probe(workload)
            return
        check_upstreams({(arm.upstream, arm.route) for arm in plan.arms})
        if self.target.testbed == "compose":
            check_plain({arm.upstream for arm in plan.arms})
            check_link(os.environ, plan.links)

    def placement(self, plan: Plan) -> Placement | None:
        """Return the CPUs of each part; None for a plan that pins none. Raise FieldError if they cannot be pinned."""
        if not plan.pin:
            return None
        if self.external is not None:
            message = "the lab cannot place a server that it did not start; leave it out"
            raise FieldError(["pin"], message, also=["url"])
        if self.target.testbed == "compose":
            message = "the lab places no workers (in Compose, UPSTREAM_CPUS and CLIENT_CPUS in .env do); leave it out"
            raise FieldError(["pin"], message, also=["cluster"])
        return placement_here(proxied=any(arm.route != "direct" for arm in plan.arms))

    def opened(
        self, plan: Plan, placement: Placement | None, logs: Path, stack: contextlib.ExitStack
    ) -> tuple[Testbed, Mapping[Link, Testbed], dict[str, str]]:
        """Return the testbed, also behind each link, which `stack` stops, and how its servers are served.

        Raise LabError if one does not start.
        """
        testbed: Linkable
        programs: dict[str, str] = {}
        cpus = placement.upstream if placement else ()
        if self.external is not None:
            testbed = self.external
        else:
            workers = replace(workers_for(most_in_flight(plan), cpus), **plan.workers)
            upstreams, routes = {arm.upstream for arm in plan.arms}, {arm.route for arm in plan.arms}
            testbed = local = stack.enter_context(LocalTestbed(upstreams, routes, logs, workers, placement=placement))
            programs = local.programs()
        links = {link: stack.enter_context(LinkedTestbed(testbed, link, logs, cpus)) for link in plan.links}
        return testbed, links, programs
