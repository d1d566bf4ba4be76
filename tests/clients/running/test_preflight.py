"""A check before a run: whether the disk has room."""

from __future__ import annotations

import shutil

import pytest

from clientlab.errors import LabError
from clientlab.experiments.experiment import Experiment, WorkloadTable
from clientlab.experiments.planning import make_plan
from clientlab.running.preflight import check_disk
from clientlab.workload.workload import Workload


def test_a_sample_log_that_does_not_fit_on_the_disk_is_refused(tmp_path, monkeypatch):
    """The log of 1,000 requests is refused on a disk with 16,000 free bytes, also if the folder does not exist yet."""
    free = shutil.disk_usage(tmp_path)._replace(free=16_000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: free)
    table = WorkloadTable(first=Workload(requests=1000))
    plan = make_plan(Experiment(name="x", question="?", strategies=["requests-session"], workloads={"w": table}))
    with pytest.raises(LabError, match="requests-session"):
        check_disk(plan, tmp_path / "none")
