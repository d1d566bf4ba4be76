"""Checks before a run: whether the system has what the plan needs. Nothing was started or measured yet."""

from __future__ import annotations

import resource
import shutil
from collections.abc import Callable, Collection
from pathlib import Path

from clientlab import units
from clientlab.errors import LabError
from clientlab.judging.shortages import demands_of, shortages
from clientlab.measuring import usage
from clientlab.results.plan import Plan
from clientlab.results.surroundings import system_limits
from clientlab.samples.log import MOST_RECORDS, RECORD_SIZE
from clientlab.workload.load import expected_requests


def check_system(plan: Plan, folder: Path, served: Collection[str], tell: Callable[[str], None]) -> None:
    """Compare the limits of the system with what the plan needs. `tell` takes a line for each possible trouble.

    `folder`: of the runs. `served`: the upstreams that the lab itself starts; their limit of open files is raised where
    they need it. Raises LabError where a trial would surely fail.
    """
    found = shortages(plan, system_limits(), served)
    for one in found:
        if one.fatal:
            raise LabError(f"{one.text}; {one.advice}")
    _check_disk(plan, folder)
    for one in found:
        tell(f"{one.text}; {one.advice}")
    _raise_files(plan, served, tell)


def _check_disk(plan: Plan, folder: Path) -> None:
    """Raises LabError if the sample log of a trial does not fit on the disk, or has too many records.

    Its space is taken before the trial.
    """
    there = next(one for one in (folder.absolute(), *folder.absolute().parents) if one.exists())
    free = shutil.disk_usage(there).free
    for arm in plan.arms:
        requests = expected_requests(plan.workloads[arm.workload]) or 0
        if requests > MOST_RECORDS:
            raise LabError(
                f"{arm.name}: {requests:,} requests; a trial records no more than {MOST_RECORDS:,}: send fewer"
            )
        size = requests * RECORD_SIZE
        if size > free:
            raise LabError(
                f"the sample log of {arm.name} takes {units.memory(size)}, and {units.memory(free)} are free in "
                f"{folder}; send fewer requests, or name another folder with --out"
            )


def _raise_files(plan: Plan, served: Collection[str], tell: Callable[[str], None]) -> None:
    """Raise the soft limit of open files for the servers, if they need more. Trials always raise theirs."""
    demands = demands_of(plan, served)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = max(demands, key=lambda one: one.files_of_servers, default=None)
    if most is None or soft == resource.RLIM_INFINITY or most.files_of_servers <= soft or soft == hard:
        return
    usage.raise_descriptor_limit()
    now = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    tell(
        f"the servers may need {most.files_of_servers:,} open files for {most.arm}: their soft limit was raised from "
        f"{soft:,} to {now:,}, and the run file has it"
    )
