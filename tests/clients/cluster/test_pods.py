"""Why a pod does not work, from its status as a cluster had it."""

from __future__ import annotations

import copy

from clientlab.cluster.workers import Trouble, trouble_of

POD = {
    "metadata": {"name": "small-urllib3-0-x7k2p", "labels": {}},
    "spec": {
        "hostname": "small-urllib3-0",
        "containers": [{"name": "worker", "image": "clientlab-clients", "env": []}],
    },
    "status": {"phase": "Running", "conditions": [{"type": "PodScheduled", "status": "True"}]},
}


def a_pod(**status):
    """A worker's pod with such a status."""
    pod = copy.deepcopy(POD)
    pod["status"] |= status
    return pod


def waiting(reason: str, message: str = "", phase: str = "Pending") -> dict:
    """The status of a pod whose container waits."""
    return {"phase": phase, "containerStatuses": [{"state": {"waiting": {"reason": reason, "message": message}}}]}


def ended(code: int, reason: str) -> dict:
    """The status of a pod whose container has ended."""
    return {"phase": "Failed", "containerStatuses": [{"state": {"terminated": {"exitCode": code, "reason": reason}}}]}


def test_a_container_that_can_not_start_is_named_with_its_image():
    """A container whose image is missing is named with that image, and its pod may still start later."""
    trouble = trouble_of(a_pod(**waiting("ErrImagePull", "not\nfound")))
    cause = "pod small-urllib3-0-x7k2p cannot start (image clientlab-clients): ErrImagePull: not found"
    assert trouble == Trouble(cause, gone=False, final=False)


def test_a_worker_out_of_memory_is_gone_for_good():
    """Its Job starts no other, which would need as much."""
    trouble = trouble_of(a_pod(**ended(137, "OOMKilled")))
    assert trouble == Trouble("pod small-urllib3-0-x7k2p failed: OOMKilled, exit code 137", gone=True, final=True)


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
