"""What the service does with the states of pods: a real run whose trials wait, and pods as a cluster describes them."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import pytest

from clientlab.cluster.workers import job_name
from clientlab.experiments.file import bundled, read_plan
from clientlab.service.pod_watch import PodWatch
from clientlab.service.schemas import AssignmentRequest
from clients.service.requests_to_lab import begin

KILLED = {"phase": "Failed", "containerStatuses": [{"state": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}}]}


@asynccontextmanager
async def measuring(store):
    """A lab whose run of the demo waits for its first worker, and the watch of its pods."""
    lab = begin(store, first=read_plan(bundled()["demo"]))
    try:
        await until(lambda: lab.run_manager.state().trial is not None)
        yield lab, PodWatch(lab.dispatcher, lab.run_manager, 0.0)
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


@pytest.mark.real
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
