"""Lost pods: where the lab runs in a cluster, it watches the pods of its workers, and knows at once why one is gone.

Without it, the lab would hear nothing of a lost worker for seconds, and wait minutes for one that can't come; and it
could not say why. Two threads read the API; all else is in the service's event loop.
"""

from __future__ import annotations

import asyncio
import http.client
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from clientlab.cluster import workers
from clientlab.cluster.api import ClusterApi, WatchEnded
from clientlab.cluster.workers import job_name, variables_of
from clientlab.errors import LabError
from clientlab.service.dispatcher import Dispatcher
from clientlab.service.run_manager import RunManager

_PAUSE = 5.0
_BROKEN = (OSError, http.client.HTTPException, WatchEnded, ValueError, KeyError)


@dataclass(frozen=True)
class WorkerPods:
    """The pods to watch. `patience`: seconds in which one that finds no node or no image may still find it."""

    selector: str
    patience: float


def watch_pods(wanted: WorkerPods, environment: Mapping[str, str], watch: PodWatch) -> None:
    """Begin to watch pods, until the process ends. Raises LabError where this is no pod with a service account."""
    api, loop = ClusterApi.of(environment), asyncio.get_running_loop()
    if api is None:
        raise LabError(
            "--worker-pods: this is no pod with a service account, so no API of a cluster is known; leave it out"
        )
    of_jobs = "involvedObject.kind=Job,reason=FailedCreate"
    for resource, selectors, take in (
        ("pods", {"labelSelector": wanted.selector}, watch.take_pod),
        ("events", {"fieldSelector": of_jobs}, watch.take_event),
    ):
        reader = _Reader(api, resource, selectors, loop, take, watch.run_manager.say)
        threading.Thread(target=reader.read, name=resource, daemon=True).start()


@dataclass(frozen=True)
class _Reader:
    """A thread that reads changes for ever, and hands them to the event loop."""

    api: ClusterApi
    resource: str
    selectors: dict[str, str]
    loop: asyncio.AbstractEventLoop
    take: Callable[[str, dict[str, Any]], None]
    say: Callable[[str], None]

    def read(self) -> None:
        """Read. What keeps this from working is said once, until it works again."""
        works, over = True, threading.Event()
        while not over.wait(0 if works else _PAUSE):
            try:
                for change, found in self.api.watch(self.resource, **self.selectors):
                    self.loop.call_soon_threadsafe(self.take, change, found)
                works = True
            except _BROKEN as error:
                if works:
                    self.say(f"the cluster's {self.resource} can't be watched, and lost workers have no cause: {error}")
                works = False


@dataclass
class _Obstacle:
    """What keeps workers of a strategy away. `due`: from when on nobody waits for them; `at`: the time of an event."""

    strategy: str
    cause: str
    due: float
    at: str = ""


@dataclass
class PodWatch:
    """What is known of the pods of the present run. All methods are called in the event loop."""

    dispatcher: Dispatcher
    run_manager: RunManager
    patience: float
    _run: str = ""
    _obstacles: dict[str, _Obstacle] = field(default_factory=dict)  # by pod or Job
    _gone: set[str] = field(default_factory=set)  # pods
    _created: dict[str, str] = field(default_factory=dict)  # Job → when its newest pod was created
    _refused: dict[str, str] = field(default_factory=dict)  # strategy → the cause that the dispatcher has

    def take_pod(self, change: str, pod: dict[str, Any]) -> None:
        """Take a new state of a pod; `change` is ADDED, MODIFIED or DELETED."""
        (run, strategy), name = variables_of(pod), pod["metadata"]["name"]
        if not self._is_present(run) or name in self._gone:
            return
        job, created = job_name(run, strategy), pod["metadata"].get("creationTimestamp") or ""
        self._created[job] = max(self._created.get(job, ""), created)
        trouble = workers.deleted(pod) if change == "DELETED" else workers.trouble_of(pod)
        if trouble is None:
            self._obstacles.pop(name, None)
        elif trouble.gone:
            self._gone.add(name)
            self._obstacles.pop(name, None)
            self.dispatcher.lose(workers.host_of(pod), trouble.cause)
            if trouble.final:
                self._keep(name, _Obstacle(strategy, trouble.cause, 0.0))
            else:
                self.run_manager.say(trouble.cause)
        else:
            self._keep(name, _Obstacle(strategy, trouble.cause, self._until()))
        self._settle()

    def take_event(self, change: str, event: dict[str, Any]) -> None:
        """Take an event of a Job whose pods can't be created."""
        present = self.run_manager.run
        if change == "DELETED" or present is None or not self._is_present(present.run):
            return
        job, cause = workers.refused_pods(event)
        for strategy in {arm.strategy for arm in present.experiment.arms}:
            if job_name(present.run, strategy) == job:
                at = event.get("lastTimestamp") or event.get("eventTime") or ""
                self._keep(job, _Obstacle(strategy, cause, self._until(), at))
        self._settle()

    def _is_present(self, run: str) -> bool:
        """Whether a run is in progress. Of the run before, nothing is kept."""
        present = self.run_manager.run
        if present is None or not self.run_manager.measuring:
            return False
        if present.run != self._run:
            self._run = present.run
            for known in (self._obstacles, self._gone, self._created, self._refused):
                known.clear()
        return run == self._run

    def _until(self) -> float:
        return asyncio.get_running_loop().time() + self.patience

    def _keep(self, name: str, found: _Obstacle) -> None:
        """Keep an obstacle, with the time from which the first of that name was due."""
        known = self._obstacles.get(name)
        if known is None:
            self.run_manager.say(found.cause)
            if found.due:
                asyncio.get_running_loop().call_at(found.due, self._settle)
        else:
            found.due = min(known.due, found.due)
        self._obstacles[name] = found

    def _settle(self) -> None:
        """Tell the dispatcher for which strategies no worker will come."""
        now = asyncio.get_running_loop().time()
        wanted: dict[str, str] = {}
        for name, obstacle in self._obstacles.items():
            # Pods that were created after the event: the quota has room again.
            over = bool(obstacle.at) and self._created.get(name, "") > obstacle.at
            if obstacle.due <= now and not over:
                wanted.setdefault(obstacle.strategy, obstacle.cause)
        for strategy in self._refused.keys() | wanted.keys():
            if wanted.get(strategy) != self._refused.get(strategy):
                self.dispatcher.refuse(strategy, wanted.get(strategy, ""))
        self._refused = wanted
