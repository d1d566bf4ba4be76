"""What the service does with the states of pods: a real run whose trials wait, and pods as a cluster describes them."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import pytest

from clientlab.cluster.api import ClusterApi
from clientlab.cluster.workers import job_name
from clientlab.errors import LabError
from clientlab.experiments.file import bundled, read_plan
from clientlab.service.pod_watch import PodWatch, WorkerPods, watch_pods
from clientlab.service.schemas import AssignmentRequest
from clients.service.requests_to_lab import begin
from running import ROOT

NO_NODE = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "2 Insufficient cpu"}
PENDING = {"phase": "Pending", "conditions": [NO_NODE]}
KILLED = {"phase": "Failed", "containerStatuses": [{"state": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}}]}


@asynccontextmanager
async def measuring(store, patience: float = 0.0):
    """A lab whose run of the demo waits for its first worker, and the watch of its pods."""
    lab = begin(store, first=read_plan(bundled()["demo"]))
    try:
        await until(lambda: lab.run_manager.state().trial is not None)
        yield lab, PodWatch(lab.dispatcher, lab.run_manager, patience)
    finally:
        await lab.run_manager.shut_down()


async def until(holds) -> None:
    """Wait for what a thread does."""
    async with asyncio.timeout(30):
        while not holds():  # noqa: ASYNC110 - it sets no event
            await asyncio.sleep(0.01)


async def stays() -> bool:
    """The worker does not go away."""
    return False


def first_strategy(lab) -> str:
    """The strategy of the trial that waits."""
    name = lab.run_manager.state().trial.partition(" · ")[0]
    return next(arm.strategy for arm in lab.run_manager.run.experiment.arms if arm.name == name)


def a_pod(run: str, strategy: str, created: str = "2026-11-23T01:00:00Z", **status) -> dict:
    """The pod of a worker."""
    name = f"{job_name(run, strategy)}-0"
    environment = [{"name": "RUN", "value": run}, {"name": "STRATEGY", "value": strategy}]
    containers = [{"name": "worker", "image": "clientlab-clients", "env": environment}]
    metadata = {"name": f"{name}-abcde", "creationTimestamp": created}
    return {"metadata": metadata, "spec": {"hostname": name, "containers": containers}, "status": status}


def test_a_pod_without_a_node_fails_the_trials_of_its_strategy_and_those_of_others_wait(store):
    """The cause is on the page from its first moment on."""

    async def go():
        async with measuring(store) as (lab, watch):
            run, strategy = lab.run_manager.run.run, first_strategy(lab)
            for other in {arm.strategy for arm in lab.run_manager.run.experiment.arms} - {strategy}:
                pod = a_pod(run, other, **PENDING)
                watch.take_pod("ADDED", pod)
                cause = f"no node for pod {pod['metadata']['name']}: 2 Insufficient cpu"
                assert lab.run_manager.state().message == cause
            assert lab.run_manager.state().failed == 0
            watch.take_pod("ADDED", a_pod(run, strategy, **PENDING))
            await until(lambda: lab.run_manager.state().failed >= 4)
            assert all("will come: no node for pod " in trial.reason for trial in lab.run_manager.run.trials)

    asyncio.run(go())


def test_a_pod_that_finds_its_node_in_time_fails_nothing(store):
    """One that found it late fails no further trials."""

    async def go():
        async with measuring(store, patience=0.2) as (lab, watch):
            run, refused = lab.run_manager.run.run, lab.dispatcher.refused
            watch.take_pod("ADDED", a_pod(run, "pycurl", **PENDING))
            watch.take_pod("MODIFIED", a_pod(run, "pycurl", phase="Running"))
            watch.take_pod("ADDED", a_pod(run, "requests", **PENDING))
            assert refused() == {}
            await until(lambda: "requests" in refused())
            watch.take_pod("MODIFIED", a_pod(run, "requests", phase="Running"))
            assert refused() == {}

    asyncio.run(go())


def test_a_worker_whose_pod_was_killed_has_lost_its_trial_and_its_strategy_has_no_other(store):
    """Whatever the cluster tells of that pod afterwards. What it tells of another run's pods is nothing to this one."""

    async def go():
        async with measuring(store) as (lab, watch):
            pod = a_pod(lab.run_manager.run.run, first_strategy(lab), **KILLED)
            request = AssignmentRequest(worker="a" * 16, host=pod["spec"]["hostname"], strategies=[first_strategy(lab)])
            assert await lab.dispatcher.poll(request, stays) is not None
            watch.take_pod("MODIFIED", a_pod("20240506-070809-other-abcd", "pycurl", **KILLED))
            assert (watch._gone, lab.dispatcher.refused()) == (set(), {})
            for change in ("MODIFIED", "MODIFIED", "DELETED"):
                watch.take_pod(change, pod)
            await until(lambda: lab.run_manager.run.trials)
            lost = lab.run_manager.run.trials[0]
            cause = f"pod {pod['metadata']['name']} failed: OOMKilled, exit code 137"
            assert (lost.status, lost.reason) == ("lost", cause)
            assert lab.dispatcher.refused() == {lost.strategy: cause}

    asyncio.run(go())


@pytest.mark.parametrize(("created", "refused"), [("2026-11-23T01:00:00Z", True), ("2026-11-23T01:00:02Z", False)])
def test_a_job_whose_pods_a_quota_refused_fails_its_strategy_unless_a_later_pod_was_created(store, created, refused):
    """The event stays in the cluster for an hour, and may be of a moment that is over."""

    async def go():
        async with measuring(store) as (lab, watch):
            run = lab.run_manager.run.run
            job, message = job_name(run, "pycurl"), 'Error creating: pods "x" is forbidden: exceeded quota: few'
            event = {"involvedObject": {"kind": "Job", "name": job}, "message": message}
            watch.take_pod("ADDED", a_pod(run, "pycurl", created, phase="Running"))
            watch.take_event("ADDED", event | {"lastTimestamp": "2026-11-23T01:00:01Z"})
            assert set(lab.dispatcher.refused()) == ({"pycurl"} if refused else set())
            assert all("exceeded quota" in cause for cause in lab.dispatcher.refused().values())

    asyncio.run(go())


def test_outside_a_cluster_no_pod_can_be_watched(store, tmp_path):
    """Outside a cluster, the option to watch pods is refused by its name."""
    assert ClusterApi.of({}, tmp_path) is None
    assert ClusterApi.of({"KUBERNETES_SERVICE_HOST": "10.96.0.1"}, tmp_path) is None

    async def go():
        async with measuring(store) as (_, watch):
            with pytest.raises(LabError, match="--worker-pods: this is no pod"):
                watch_pods(WorkerPods("app=worker", 1.0), {}, watch)

    asyncio.run(go())


def test_the_lab_of_the_manifests_watches_the_pods_that_its_template_makes():
    """The selector in the lab's arguments is a label of the workers."""
    label = "app.kubernetes.io/component"
    lab = (ROOT / "deploy/kubernetes/base/lab.yaml").read_text(encoding="utf-8")
    worker = (ROOT / "deploy/kubernetes/base/worker.yaml").read_text(encoding="utf-8")
    assert f"--worker-pods, {label}=worker" in lab
    assert f"{{{label}: worker}}" in worker
