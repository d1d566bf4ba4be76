"""Plans of experiment files, checked as `clientlab run` checks them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from clientlab.experiments.request import RunRequest, plan_run, read_base
from clientlab.results.plan import Plan


def checked_plan(path: Path, *, quick: bool = False, **given: Any) -> Plan:
    """Return the plan of a file for this machine.

    `given`: values that replace those of the file.
    """
    request = RunRequest(experiment=str(path), quick=quick, **given)
    return plan_run(request, read_base(request), None, lambda _: None)
