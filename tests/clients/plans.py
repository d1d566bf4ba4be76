"""Plans of experiment files, checked as `clientlab run` checks them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from clientlab.experiments.request import RunRequest, plan_run
from clientlab.results.plan import Plan


def checked_plan(path: Path, *, quick: bool = False, **given: Any) -> Plan:
    """Return the plan of a file for this machine. `given`: values that replace those of the file."""
    return plan_run(RunRequest(experiment=str(path), quick=quick, **given), None, lambda _: None)
