"""Why a pod does not work, from its status as a cluster had it."""

from __future__ import annotations

import copy

import pytest

from clientlab.cluster.workers import Trouble, deleted, host_of, refused_pods, trouble_of

POD = {
    "metadata": {"name": "small-urllib3-0-x7k2p", "labels": {}},
    "spec": {
        "hostname": "small-urllib3-0",
        "containers": [{"name": "worker", "image": "clientlab-clients", "env": []}],
    },
    "status": {"phase": "Running", "conditions": [{"type": "PodScheduled", "status": "True"}]},
}
NO_NODE = "0/2 nodes are available: 2 Insufficient cpu."


def a_pod(deleted_at: str | None = None, **status):
    """A worker's pod with such a status."""
    pod = copy.deepcopy(POD)
    pod["status"] |= status
    if deleted_at:
        pod["metadata"]["deletionTimestamp"] = deleted_at
    return pod


def waiting(reason: str, message: str = "", phase: str = "Pending") -> dict:
    """The status of a pod whose container waits."""
    return {"phase": phase, "containerStatuses": [{"state": {"waiting": {"reason": reason, "message": message}}}]}


def ended(code: int, reason: str) -> dict:
    """The status of a pod whose container has ended."""
    return {"phase": "Failed", "containerStatuses": [{"state": {"terminated": {"exitCode": code, "reason": reason}}}]}


@pytest.mark.parametrize(
    "status",
    [
        {},
        {"phase": "Succeeded"},
        {"phase": "Pending"},
        waiting("ContainerCreating"),
        {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]},
    ],
)
def test_a_pod_that_works_or_may_still_start_has_no_trouble(status):
    """One that has done its work has none either."""
    assert trouble_of(a_pod(**status)) is None


@pytest.mark.parametrize(
    "reason", ["ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "CreateContainerConfigError"]
)
def test_a_container_that_can_not_start_is_named_with_its_image(reason):
    """A container whose image is missing is named with that image, and its pod may still start later."""
    trouble = trouble_of(a_pod(**waiting(reason, "not\nfound")))
    cause = f"pod small-urllib3-0-x7k2p cannot start (image clientlab-clients): {reason}: not found"
    assert trouble == Trouble(cause, gone=False, final=False)


def test_a_pod_without_a_node_has_the_words_of_the_scheduler():
    """It may get a node later."""
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": NO_NODE}
    trouble = trouble_of(a_pod(phase="Pending", conditions=[condition]))
    assert trouble == Trouble(f"no node for pod small-urllib3-0-x7k2p: {NO_NODE}", gone=False, final=False)


def test_a_worker_out_of_memory_is_gone_for_good():
    """Its Job starts no other, which would need as much."""
    trouble = trouble_of(a_pod(**ended(137, "OOMKilled")))
    assert trouble == Trouble("pod small-urllib3-0-x7k2p failed: OOMKilled, exit code 137", gone=True, final=True)
    assert trouble_of(a_pod(**ended(2, "Error"))).cause == "pod small-urllib3-0-x7k2p failed: exit code 2"
    assert trouble_of(a_pod(phase="Failed")).cause == "pod small-urllib3-0-x7k2p failed: no reason is known"


def test_a_worker_that_a_signal_ended_before_its_run_is_replaced():
    """As by a pod that was deleted."""
    trouble = trouble_of(a_pod(**ended(143, "Error")))
    assert (trouble.gone, trouble.final) == (True, False)


def test_an_evicted_worker_is_gone_and_replaced_whatever_its_exit_code():
    """By the kubelet of a node that is short of memory, by a drain, or for a pod of higher priority."""
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "TerminationByKubelet",
        "message": "low on memory",
    }
    status = ended(137, "Error") | {"reason": "Evicted", "conditions": [condition]}
    cause = "pod small-urllib3-0-x7k2p was evicted (TerminationByKubelet: low on memory)"
    assert trouble_of(a_pod(**status)) == Trouble(cause, gone=True, final=False)


def test_a_deleted_worker_is_gone_from_its_first_notice_on():
    """And where nothing but the end of the pod was seen. One that had done its work is not missed."""
    cause = "pod small-urllib3-0-x7k2p was deleted"
    assert trouble_of(a_pod(deleted_at="2026-11-23T01:02:03Z")) == Trouble(cause, gone=True, final=False)
    assert deleted(a_pod()) == Trouble(cause, gone=True, final=False)
    assert deleted(a_pod(phase="Succeeded")) is None
    assert trouble_of(a_pod(deleted_at="2026-11-23T01:02:03Z", phase="Succeeded")) is None


def test_pods_that_could_not_be_created_are_of_a_job():
    """A quota that prevents pods is reported from the event of their Job."""
    message = (
        'Error creating: pods "small-urllib3-1-" is forbidden: exceeded quota: small, requested: pods=1, used: pods=1'
    )
    event = {"involvedObject": {"kind": "Job", "name": "small-urllib3"}, "message": message}
    job, cause = refused_pods(event)
    assert job == "small-urllib3"
    assert cause.startswith(
        'no pod of Job small-urllib3 can be created: pods "small-urllib3-1-" is forbidden: exceeded'
    )


def test_a_cause_is_one_line_of_bounded_length():
    """The scheduler names each kind of obstacle, and registries answer with pages."""
    cause = trouble_of(a_pod(**waiting("ErrImagePull", "word " * 1000))).cause
    assert len(cause) == 300
    assert cause.endswith("…")


def test_the_host_of_a_pod_is_what_its_worker_calls_itself():
    """Of an Indexed Job it is not the pod's name."""
    assert host_of(POD) == "small-urllib3-0"
    assert host_of({"metadata": {"name": "lab-0"}, "spec": {}}) == "lab-0"
