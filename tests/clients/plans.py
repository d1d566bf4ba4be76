"""Plans of experiment files, checked as `clientlab run` checks them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from clientlab.experiments.overrides import Overrides
from clientlab.results.plan import Plan
from clientlab.results.target import Target
from clientlab.standalone.planning import plan_of
from clientlab.standalone.requests import NewRun


def checked_plan(path: Path, *, quick: bool = False, **given: Any) -> Plan:
    """Return the plan of a file for this machine. `given`: values that replace those of the file."""
    request = NewRun(
        command="clientlab run", target=Target(testbed="local"), experiment=str(path), quick=quick,
        overrides=Overrides(**given),
    )  # fmt: skip
    return plan_of(request, None, lambda _: None)
