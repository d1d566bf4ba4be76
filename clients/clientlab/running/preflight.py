"""A check before a run: whether the disk has room for the samples of a trial. Nothing was started or measured yet."""

from __future__ import annotations

import shutil
from pathlib import Path

from clientlab import units
from clientlab.errors import LabError
from clientlab.results.plan import Plan
from clientlab.samples.log import RECORD_SIZE
from clientlab.workload.load import expected_requests


def check_disk(plan: Plan, folder: Path) -> None:
    """Raise LabError if the sample log of a trial does not fit on the disk: its space is taken before the trial.

    `folder`: of the runs.
    """
    there = next(one for one in (folder.absolute(), *folder.absolute().parents) if one.exists())
    free = shutil.disk_usage(there).free
    for arm in plan.arms:
        size = (expected_requests(plan.workloads[arm.workload]) or 0) * RECORD_SIZE
        if size > free:
            raise LabError(
                f"the sample log of {arm.name} takes {units.memory(size)}, and {units.memory(free)} are free in "
                f"{folder}; send fewer requests, or name another folder with --out"
            )
