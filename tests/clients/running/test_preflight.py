"""Checks before a run, on the system as it is."""

from __future__ import annotations

import resource
import shutil

import pytest

from clientlab.errors import LabError
from clientlab.experiments.experiment import Experiment, WorkloadTable
from clientlab.experiments.planning import make_plan
from clientlab.running.preflight import check_system
from clientlab.workload.workload import Workload


def plan_of(strategy: str, **workload):
    """A plan of one strategy."""
    table = WorkloadTable(first=Workload(**workload))
    return make_plan(Experiment(name="x", question="Why?", strategies=[strategy], workloads={"workload": table}))


def test_a_sample_log_that_does_not_fit_on_the_disk_is_refused(tmp_path, monkeypatch):
    """The log of 1,000 requests is refused on a disk with 16,000 free bytes, also if the folder does not exist yet."""
    free = shutil.disk_usage(tmp_path)._replace(free=16_000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: free)
    with pytest.raises(LabError, match="requests-session"):
        check_system(plan_of("requests-session", requests=1000), tmp_path / "none", (), print)


def test_the_soft_limit_of_open_files_is_raised_for_servers_only_where_they_need_it(tmp_path):
    """And it is said: servers with another limit are other servers."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    low, lines = min(soft, hard // 2, 512), []
    needed = low - 63
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (low, hard))
        for concurrency in (needed - 1, needed):
            assert lines == []
            assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == low
            plan = plan_of("aiohttp@workers", concurrency=concurrency, requests=1000)
            check_system(plan, tmp_path, ("aiohttp",), lines.append)
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == hard
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert len(lines) == 1
