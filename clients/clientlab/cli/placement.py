"""`clientlab run --pin`: the CPUs of each part, or the reason why this run has none."""

from __future__ import annotations

import click

from clientlab.errors import FieldError
from clientlab.results.document import Placement
from clientlab.results.plan import Plan
from clientlab.running.placement import placement_here


def placement_of(plan: Plan, testbed: str, *, foreign: bool) -> Placement | None:
    """The CPUs of each part; None for a plan that pins none. `foreign`: the server is the user's own.

    Raises FieldError where they cannot be pinned.
    """
    if not plan.pin:
        return None
    if foreign:
        raise FieldError(["pin"], "the lab cannot place a server that it did not start; leave it out", also=["url"])
    if testbed == "compose":
        message = "containers are placed by UPSTREAM_CPUS and CLIENT_CPUS in .env; leave it out"
        raise FieldError(["pin"], message, also=["testbed"])
    return placement_here(proxied=any(arm.route != "direct" for arm in plan.arms))


def announce(line: str) -> None:
    """Print a line about the run that begins, on standard error."""
    click.echo(f"clientlab: {line}", err=True)
