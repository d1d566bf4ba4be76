"""Runs on a cluster: to their end, through lost pods, and with workers that can't come."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from clientlab.cluster.workers import host_of
from clientlab.experiments.file import bundled, read_plan
from running import eventually

pytestmark = pytest.mark.real

SOON = 30.0
TRIALS = len(read_plan(bundled()["demo"], quick=True).arms)
"""Of a round of the demo's quick form."""


def upstream_counts(lab) -> dict[str, int]:
    return {name: lab.sent_to(name) for name in ("aiohttp", "flask")}


def expected_counts(run) -> dict[str, int]:
    """Requests of all trials by upstream, those of the warm-up of each shard included."""
    counted, plan = Counter({"aiohttp": 0, "flask": 0}), run.experiment
    arms = {arm.name: arm for arm in plan.arms}
    for trial in run.trials:
        arm = arms[trial.arm]
        counted[arm.upstream] += trial.requests + max(1, len(trial.by_shard)) * plan.workloads[arm.workload].warmup
    return dict(counted)


def test_the_short_demo_runs_to_its_end_and_its_counts_are_those_of_the_upstream(lab):
    """Every strategy was measured by a pod of its own, and the run file was fetched; no Job is left."""
    before = upstream_counts(lab)
    started = lab.run()
    eventually(lambda: len(lab.workers(started.name)) == 8, "all workers are there")
    code, run = started.end()
    assert (code, run.status, len(run.trials)) == (0, "done", TRIALS), started.said
    assert {trial.status for trial in run.trials} == {"done"}
    after = upstream_counts(lab)
    assert {name: after[name] - before[name] for name in before} == expected_counts(run)
    eventually(lambda: lab.workers(run.run) == [], "the pods of the run are gone", 60)


def test_two_shards_of_a_trial_run_on_two_nodes_and_their_counts_are_those_of_the_upstream(lab):
    """Each trial is one result of both pods, which began at one agreed moment by the lab's clock."""
    before = upstream_counts(lab)
    started = lab.run("--shards", "2", "-t", "aiohttp@workers", "-t", "requests-session@threads")
    eventually(lambda: len(lab.workers(started.name)) == 4, "all workers are there")
    eventually(lambda: all(pod["spec"].get("nodeName") for pod in lab.workers(started.name)), "all have a node")
    nodes = {host_of(pod): pod["spec"]["nodeName"] for pod in lab.workers(started.name)}
    code, run = started.end()
    assert (code, run.status, len(run.trials)) == (0, "done", 4), started.said
    after = upstream_counts(lab)
    assert {name: after[name] - before[name] for name in before} == expected_counts(run)
    for trial in run.trials:
        assert len({nodes[shard.host] for shard in trial.by_shard}) == 2
        assert sum(shard.requests for shard in trial.by_shard) == trial.requests
        assert all(shard.clock is not None for shard in trial.by_shard)


def delete(lab, pod: str) -> str:
    """Delete a pod; the cause that the lab is to name."""
    lab.call("delete", "pod", pod, "--wait=false")
    return f"pod {pod} was deleted"


def evict(lab, pod: str) -> str:
    """Evict a pod, as the drain of a node does; the cause that the lab is to name."""
    path = f"/api/v1/namespaces/{lab.namespace}/pods/{pod}/eviction"
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": lab.namespace}}
    lab.call("create", "--raw", path, "-f", "-", document=eviction)
    return f"pod {pod} was evicted (EvictionByEvictionAPI: Eviction API: evicting)"


@pytest.mark.parametrize("end", [delete, evict])
def test_a_worker_that_loses_its_pod_in_its_trial_is_replaced_and_the_trial_is_repeated(lab, end):
    """The trial is lost at once with that cause, another pod of the Job comes, and the run is whole."""
    started, causes = lab.run(), {}
    with lab.lab() as api:

        def lost() -> bool:
            """Whether a trial is lost. Trials are short, so each worker that has one loses its pod until one is."""
            state = api.document("/api/state")
            for worker in state["workers"]:
                if worker["state"] == "measuring" and worker["host"] not in causes:
                    hosts = {host_of(pod): pod["metadata"]["name"] for pod in lab.workers(started.name)}
                    causes[worker["host"]] = end(lab, hosts[worker["host"]])
            trials = api.document(f"/api/runs/{started.name}")["trials"]
            return any(trial["status"] == "lost" for trial in trials)

        assert started.name
        eventually(lost, "a trial is lost", 120)
    code, run = started.end()
    assert (code, run.status) == (0, "done"), started.said
    reasons = {trial.reason for trial in run.trials if trial.status == "lost"}
    assert reasons
    assert reasons <= set(causes.values())
    assert sum(trial.status == "done" for trial in run.trials) == TRIALS


def test_a_lab_that_is_deleted_in_its_run_goes_on_with_it(lab):
    """From its file: no trial is missing, and none is measured twice."""
    started = lab.run()
    with lab.lab() as api:
        assert started.name
        eventually(lambda: api.document("/api/state")["done"] >= 3, "some trials have ended", 120)
    lab.call("delete", "pod", "lab-0", "--wait=false")
    code, run = started.end()
    assert "the lab is away" in started.said
    assert (code, run.status) == (0, "done"), started.said
    assert sorted(trial.order for trial in run.trials if trial.status == "done") == list(range(TRIALS))


OUT_OF_REACH = {"resources": {"requests": {"cpu": "1000"}, "limits": {"cpu": "1000"}}}
TOO_LITTLE = {"resources": {"requests": {"memory": "12Mi"}, "limits": {"memory": "12Mi"}}}


@pytest.mark.parametrize(
    ("container", "cause"),
    [
        ({"image": "clientlab-missing"}, "cannot start (image clientlab-missing): "),
        ({"image": "clientlab-missing", "imagePullPolicy": "Never"}, "ErrImageNeverPull"),
        (OUT_OF_REACH, "no node for pod "),
        (TOO_LITTLE, "failed: OOMKilled"),
        ({"args": ["--no-such-option"]}, "failed: exit code 2"),
    ],
    ids=["no image", "image never pulled", "no node", "out of memory", "exit code"],
)
def test_workers_that_can_not_come_have_a_clear_cause_soon(lab, container, cause):
    """On the page and in the command's lines within 30 s. The trials fail with the cause, and the run ends."""
    with lab.change_worker(container):
        started = lab.run()
        assert started.seconds_until(cause) < SOON
        assert started.seconds_until("failed: ") < 2 * SOON
        code, run = started.end()
    assert (code, run.status) == (3, "incomplete")
    assert all(trial.status == "failed" and cause in trial.reason for trial in run.trials)


def test_workers_beyond_a_quota_have_a_clear_cause_soon(lab):
    """The pods that the quota permits are measured with."""
    present = len(lab.get("pods")["items"])
    spec = {"hard": {"pods": str(present + 4)}}
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "few"}, "spec": spec}
    lab.call("create", "-f", "-", document=quota)
    try:
        eventually(lambda: "used" in lab.get("resourcequota", "few").get("status", {}), "the quota counts")
        started = lab.run()
        assert started.seconds_until("exceeded quota") < SOON
        code, run = started.end()
    finally:
        lab.call("delete", "resourcequota", "few")
    assert (code, run.status) == (3, "incomplete")
    failed = {trial.strategy for trial in run.trials if trial.status == "failed"}
    assert len(failed) == 4
    assert all("exceeded quota" in trial.reason for trial in run.trials if trial.status == "failed")


def test_delete_leaves_nothing(lab):
    """No namespace, no Job, no pod, also in the middle of a run."""
    started = lab.run()
    eventually(lambda: len(lab.workers(started.name)) == 8, "all workers are there")
    lab.call("delete", "-k", str(lab.overlay("demo")), "--wait=true", "--timeout=100s")
    eventually(lambda: lab.namespace not in json.dumps(lab.get("namespaces")), "the namespace is gone", 120)
    for kind in ("pods", "jobs", "persistentvolumeclaims"):
        assert lab.get(kind)["items"] == []
    started.process.terminate()
    assert started.process.wait(30) == 3
