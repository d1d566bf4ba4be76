"""The Jobs of workers, made of the template in deploy/kubernetes."""

from __future__ import annotations

import pytest
import yaml

from clientlab.cluster.workers import RUN_LABEL, variables_of, worker_job
from running import ROOT

RUN = "20261123-010203456-six-strategies-ab12"


@pytest.fixture(scope="module")
def template():
    """The suspended CronJob of the base."""
    return yaml.safe_load((ROOT / "deploy/kubernetes/base/worker.yaml").read_text(encoding="utf-8"))


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
