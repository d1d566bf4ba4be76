"""A run on the lab of a cluster: the Jobs of its workers, and its progress."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from clientlab.cluster.kubectl import Kubectl
from clientlab.cluster.lab_access import ForwardedLab, installed
from clientlab.cluster.worker_jobs import RUN_LABEL, run_label, worker_job
from clientlab.errors import LabError

_LOOK_SECONDS = 1.0
_WORKERS_SECONDS = 20.0


def require_permission(kubectl: Kubectl) -> None:
    """Raises LabError where this account can't make the Jobs: the run would wait for workers that never come."""
    if kubectl.run("auth", "can-i", "create", "jobs.batch", accepted=(0, 1)).strip() != "yes":
        raise LabError(f"this account may not create Jobs in namespace {kubectl.namespace!r}; ask for the right to")


def make_jobs(kubectl: Kubectl, run: dict[str, Any]) -> None:
    """A Job of workers for each strategy of a run; `run` is its document. Raises LabError, and leaves no Job then."""
    template, name = installed(kubectl), run["run"]
    jobs = [worker_job(template, name, strategy, shards) for strategy, shards in shards_of(run).items()]
    try:
        kubectl.run("create", "--filename", "-", document={"apiVersion": "v1", "kind": "List", "items": jobs})
    except LabError as error:
        delete_jobs(kubectl, name)
        raise LabError(f"{error}; run {name} has no workers, and ends without them") from error


def await_workers(kubectl: Kubectl, name: str) -> None:
    """Give the workers of a run that has ended the time to end: the last one may wait for its last scrape."""
    deadline = time.monotonic() + _WORKERS_SECONDS
    while time.monotonic() < deadline:
        found = kubectl.get("pods", "--selector", _of(name), "--field-selector", "status.phase=Running")["items"]
        if not found:
            return
        time.sleep(_LOOK_SECONDS)


def delete_jobs(kubectl: Kubectl, name: str) -> None:
    """Delete the Jobs of a run with their pods. Raises LabError."""
    kubectl.run("delete", "jobs", "--selector", _of(name), "--ignore-not-found", "--wait=false")


def _of(name: str) -> str:
    return f"{RUN_LABEL}={run_label(name)}"


def shards_of(run: dict[str, Any]) -> dict[str, int]:
    """Strategy → the most workers that one of its trials needs."""
    plan, found = run["experiment"], dict[str, int]()
    for arm in plan["arms"]:
        shards = plan["workloads"][arm["workload"]].get("shards", 1)
        found[arm["strategy"]] = max(shards, found.get(arm["strategy"], 1))
    return found


def follow(lab: ForwardedLab, name: str, say: Callable[[str], None]) -> None:
    """Wait for the end of a run, and say each new line of the lab. Raises IncompleteRun where the lab stays away."""
    said = ""
    while True:
        state = lab.document("/api/state")
        if state["run"] == name and state["message"] != said:
            said = state["message"]
            say(said)
        if state["run"] != name or not state["measuring"]:
            return
        time.sleep(_LOOK_SECONDS)
