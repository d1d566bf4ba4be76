"""The Jobs whose pods are workers: one Indexed Job for each strategy of a run, one pod for each shard.

All Jobs are made of one template, the suspended CronJob `worker` (deploy/kubernetes/base/worker.yaml). `kubectl create
job --from=cronjob/worker` makes them as well. A pod knows its run and its strategy by two environment variables.
"""

from __future__ import annotations

import copy
import hashlib
import re
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
