"""The testbed of `clientlab run`: the lab's own servers, the Compose stack's, or the user's; and its links."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from clientlab.cli.placement import announce
from clientlab.cli.run_options import OPTION_NAMES, RunOptions
from clientlab.errors import LabError
from clientlab.results.document import Placement
from clientlab.results.plan import Plan
from clientlab.running.estimate import most_in_flight
from clientlab.running.testbed import Testbed
from clientlab.testbeds.compose import ComposeTestbed, check_link, check_plain
from clientlab.testbeds.external import ExternalTarget
from clientlab.testbeds.linked import linked
from clientlab.testbeds.local import LocalTestbed, check_upstreams
from clientlab.testbeds.upstream_process import workers_for
from clientlab.workload.link import Link


def target_of(options: RunOptions) -> ExternalTarget | None:
    """The user's own server; None for the lab's own upstreams. Raises LabError."""
    if options.url is None:
        if options.ca_file is not None:
            raise LabError("--ca-file without --url: the lab's own routes bring their CA; leave it out")
        if options.yes and options.resume is None:
            raise LabError("--yes without --url: the lab's own upstreams are on this machine; leave it out")
        return None
    for field in ("upstreams", "routes", "delay", "path"):
        if options.has(field):
            option = OPTION_NAMES[field]
            raise LabError(f"--url with {option}: only the lab's own upstreams have {option}; write it into the URL")
    return ExternalTarget(options.url, options.ca_file, public=options.yes)


def check_testbed(options: RunOptions, plan: Plan, target: ExternalTarget | None) -> None:
    """Raises LabError where the plan cannot be measured on its testbed, or has no claims to require."""
    if options.require_claims and not plan.claims:
        raise LabError(f"--require-claims: experiment {plan.name!r} makes no claims; leave it out")
    if target is not None:
        if plan.links:
            target.check_link()
        for workload in {arm.group: plan.workloads[arm.workload] for arm in plan.arms}.values():
            target.probe(workload)
        return
    upstreams = {arm.upstream for arm in plan.arms}
    check_upstreams(upstreams, {arm.route for arm in plan.arms})
    if options.testbed == "compose":
        check_plain(upstreams)
        check_link(os.environ, plan.links)


def opened_testbed(
    options: RunOptions,
    planned: tuple[Plan, Placement | None],
    target: ExternalTarget | None,
    logs: Path,
    stack: contextlib.ExitStack,
) -> tuple[Testbed, Mapping[Link, Testbed], dict[str, str]]:
    """The testbed, also behind each link, which `stack` stops, and how its servers are served. Raises LabError."""
    plan, placement = planned
    if target is not None:
        return target, linked(target, plan, logs, stack), {}
    if options.testbed == "compose":
        compose = ComposeTestbed(os.environ)
        return compose, compose.links(), compose.programs()
    cpus = placement.upstream if placement else ()
    workers = replace(workers_for(most_in_flight(plan), cpus), **plan.workers)
    routes = {arm.route for arm in plan.arms}
    local = LocalTestbed({arm.upstream for arm in plan.arms}, routes, logs, workers, placement=placement)
    if placement is not None:
        announce(f"pinned: {placement}")
    stack.enter_context(local)
    return local, linked(local, plan, logs, stack, placement), local.programs()
