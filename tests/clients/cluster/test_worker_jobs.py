"""The Jobs of workers, made of the template in deploy/kubernetes."""

from __future__ import annotations

import re

import pytest
import yaml

from clientlab.cluster.workers import RUN_LABEL, job_name, run_label, variables_of, worker_job
from clientlab.experiments.file import bundled
from clientlab.strategies import STRATEGIES
from running import ROOT

RUN = "20261123-010203456-six-strategies-ab12"
NAME = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")
LABEL = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")


@pytest.fixture(scope="module")
def template():
    """The suspended CronJob of the base."""
    return yaml.safe_load((ROOT / "deploy/kubernetes/base/worker.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("experiment", [*bundled(), "x" * 64, "Ends_with_underscore_"])
def test_every_job_has_a_name_of_its_own_that_its_pods_can_have(experiment):
    """RFC 1123: 63 characters with a pod's index behind it; the run's name is a label."""
    run = f"20261123-010203456-{experiment}-ab12"
    strategies = [*STRATEGIES, "aiohttp@workers?pool=10", "aiohttp@workers?pool=11"]
    names = [job_name(run, strategy) for strategy in strategies]
    assert len(set(names)) == len(strategies)
    for name in names:
        assert NAME.fullmatch(name), name
        assert len(f"{name}-99999") <= 63
    assert LABEL.fullmatch(run_label(run))
    assert len(run_label(run)) <= 63


def test_the_name_of_a_job_begins_with_that_of_its_run():
    """For every bundled experiment, the Job's name begins with the run's name."""
    assert job_name(RUN, "aiohttp@workers").startswith(f"{RUN}-aiohttp-wo")
    for experiment in bundled():
        run = f"20261123-010203456-{experiment}-ab12"
        assert job_name(run, "pycurl").startswith(run)


def test_a_job_has_a_pod_for_each_shard_and_the_pods_know_run_and_strategy(template):
    """All else is the template's, which stays as it is."""
    job = worker_job(template, RUN, "aiohttp@workers?pool=10", 3)
    spec, pod = job["spec"], job["spec"]["template"]
    assert (spec["completions"], spec["parallelism"], spec["completionMode"]) == (3, 3, "Indexed")
    assert spec["backoffLimit"] == 0
    assert spec["activeDeadlineSeconds"] == 24 * 3600  # also where the lab never ends the run
    assert job["metadata"]["labels"][RUN_LABEL] == pod["metadata"]["labels"][RUN_LABEL] == RUN
    assert pod["metadata"]["labels"]["app.kubernetes.io/component"] == "worker"
    assert variables_of(pod) == (RUN, "aiohttp@workers?pool=10")
    assert variables_of(template["spec"]["jobTemplate"]["spec"]["template"]) == ("", "")
    original = template["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    assert {**pod["spec"], "containers": 0} == {**original, "containers": 0}


def test_the_template_never_starts_a_job(template):
    """It is suspended, and its day does not come."""
    assert template["spec"]["suspend"] is True
    assert template["spec"]["schedule"].split()[2:4] == ["31", "2"]
