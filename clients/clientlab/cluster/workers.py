"""The workers of a cluster: the Jobs whose pods they are, and what keeps a pod from working.

All Jobs are made of one template, the suspended CronJob `worker` (deploy/kubernetes/base/worker.yaml). `kubectl create
job --from=cronjob/worker` makes them as well. A pod knows its run and its strategy by two environment variables.
"""

from __future__ import annotations

import copy
import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

TEMPLATE = "worker"
"""Name of the CronJob that holds the template."""

RUN, STRATEGY = "RUN", "STRATEGY"
"""Environment variables of a worker's container."""

RUN_LABEL = "clientlab/run"

_LONGEST_NAME = 57
"""Of a Job. The host name of its pods ends with an index of up to five digits; it has 63 characters (RFC 1123)."""

_LONGEST_LABEL = 63
_DIGEST = 6


def job_name(run: str, strategy: str) -> str:
    """The name of a strategy's Job: the run's name, the strategy's, and a digest of both, which makes it unique."""
    digest = hashlib.sha256(f"{run} {strategy}".encode()).hexdigest()[:_DIGEST]
    readable = re.sub(r"[^a-z0-9]+", "-", f"{run}-{strategy}".lower()).strip("-")
    return f"{readable[: _LONGEST_NAME - _DIGEST - 1].rstrip('-')}-{digest}"


def run_label(run: str) -> str:
    """The run's name as the value of a label."""
    return re.sub(r"[^A-Za-z0-9._-]", "-", run)[:_LONGEST_LABEL].strip("-._")


def worker_job(template: dict[str, Any], run: str, strategy: str, shards: int) -> dict[str, Any]:
    """The manifest of a strategy's Job. `template`: the CronJob."""
    made = copy.deepcopy(template["spec"]["jobTemplate"])
    spec, pod = made["spec"], made["spec"]["template"]
    spec |= {"completions": shards, "parallelism": shards}
    labels = {**pod.get("metadata", {}).get("labels", {}), RUN_LABEL: run_label(run)}
    pod["metadata"] = {**pod.get("metadata", {}), "labels": labels}
    container = pod["spec"]["containers"][0]
    own = {RUN: run, STRATEGY: strategy}
    kept = [variable for variable in container.get("env", []) if variable["name"] not in own]
    container["env"] = [*kept, *({"name": name, "value": value} for name, value in own.items())]
    metadata = {"name": job_name(run, strategy), "labels": labels}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}


def variables_of(pod: dict[str, Any]) -> tuple[str, str]:
    """Run and strategy of a worker's pod; empty where it names none."""
    environment = pod["spec"]["containers"][0].get("env", [])
    found = {variable["name"]: variable.get("value", "") for variable in environment}
    return found.get(RUN, ""), found.get(STRATEGY, "")


_MOST_CHARACTERS = 300
_BEING_STARTED = {"ContainerCreating", "PodInitializing"}
_REPLACED_CODES = {130, 143}
"""Exit codes of a worker that SIGINT or SIGTERM ended before its run had ended. Its Job starts another pod for these
(`podFailurePolicy` in deploy/kubernetes/base/worker.yaml), and for evictions."""


@dataclass(frozen=True)
class Trouble:
    """Why a pod does not work.

    `gone`: its worker is gone; otherwise the pod has not started yet. `final`: its Job starts no other pod.
    """

    cause: str
    gone: bool
    final: bool


def host_of(pod: dict[str, Any]) -> str:
    """The host name inside the pod: of an Indexed Job it is not the pod's name."""
    return str(pod["spec"].get("hostname") or pod["metadata"]["name"])


def trouble_of(pod: dict[str, Any]) -> Trouble | None:
    """Why a pod does not work; None where it works, may still start, or has done its work."""
    status, name = pod.get("status", {}), pod["metadata"]["name"]
    phase = status.get("phase")
    if phase == "Succeeded":
        return None
    evicted = next(_conditions(status, "DisruptionTarget", "True"), None)
    if evicted is not None:
        how = ": ".join(filter(None, (evicted.get("reason"), evicted.get("message"))))
        return Trouble(_line(f"pod {name} was evicted ({how})"), gone=True, final=False)
    if phase == "Failed":
        return _failed(status, name)
    if "deletionTimestamp" in pod["metadata"]:
        return Trouble(f"pod {name} was deleted", gone=True, final=False)
    return _not_started(pod, status, name)


def deleted(pod: dict[str, Any]) -> Trouble | None:
    """The same of a pod that the API has no more."""
    if pod.get("status", {}).get("phase") in {"Succeeded", "Failed"}:
        return trouble_of(pod)
    return trouble_of(pod) or Trouble(f"pod {pod['metadata']['name']} was deleted", gone=True, final=False)


def refused_pods(event: dict[str, Any]) -> tuple[str, str]:
    """The Job of an event `FailedCreate`, and why no pod of it can be created, such as a quota."""
    job = event["involvedObject"]["name"]
    reason = str(event.get("message", "")).removeprefix("Error creating: ")
    return job, _line(f"no pod of Job {job} can be created: {reason}")


def _failed(status: dict[str, Any], name: str) -> Trouble:
    states = (state["terminated"] for state in _states(status) if "terminated" in state)
    ended: dict[str, Any] = next((state for state in states if state.get("exitCode")), {})
    code, reason = ended.get("exitCode"), ended.get("reason") or status.get("reason")
    if code in _REPLACED_CODES:
        return Trouble(f"pod {name} was ended before its run (exit code {code})", gone=True, final=False)
    known = [] if reason in {None, "Error"} else [str(reason)]
    known += [] if code is None else [f"exit code {code}"]
    known += [str(status["message"])] if status.get("message") else []
    return Trouble(_line(f"pod {name} failed: {', '.join(known) or 'no reason is known'}"), gone=True, final=True)


def _not_started(pod: dict[str, Any], status: dict[str, Any], name: str) -> Trouble | None:
    for state in _states(status):
        waiting = state.get("waiting")
        if waiting is not None and waiting.get("reason") not in {None, *_BEING_STARTED}:
            image = pod["spec"]["containers"][0]["image"]
            why = ": ".join(filter(None, (waiting["reason"], waiting.get("message"))))
            return Trouble(_line(f"pod {name} cannot start (image {image}): {why}"), gone=False, final=False)
    for condition in _conditions(status, "PodScheduled", "False"):
        if condition.get("reason") == "Unschedulable":
            return Trouble(_line(f"no node for pod {name}: {condition.get('message')}"), gone=False, final=False)
    return None


def _states(status: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for container in (*status.get("initContainerStatuses", ()), *status.get("containerStatuses", ())):
        yield container.get("state", {})


def _conditions(status: dict[str, Any], kind: str, value: str) -> Iterator[dict[str, Any]]:
    for condition in status.get("conditions", ()):
        if (condition["type"], condition["status"]) == (kind, value):
            yield condition


def _line(text: str) -> str:
    """One line of bounded length: the API's messages name each node and each image."""
    line = " ".join(text.split())
    return line if len(line) <= _MOST_CHARACTERS else f"{line[: _MOST_CHARACTERS - 1]}…"
