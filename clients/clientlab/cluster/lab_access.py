"""The lab service of a cluster as this machine reaches it, by `kubectl`, and a run there with the Jobs of its workers.

`kubectl` finds the cluster and its credentials as always: by KUBECONFIG and its present context.

The forwarded connection begins in the pod's own network, so that no NetworkPolicy has to permit it, and nothing of the
lab is open to the cluster or beyond. `kubectl exec` would start a Python in the lab's container for each question.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import secrets
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from clientlab import child_processes
from clientlab.cluster.workers import RUN_LABEL, TEMPLATE, run_label, trouble_of, worker_job
from clientlab.errors import IncompleteRun, LabError
from clientlab.worker.lab_client import LOST_ERRORS, LabClient

_SECONDS = 30
_INSTALL = "install it, and name a cluster with KUBECONFIG: https://kubernetes.io/docs/tasks/tools/"


class NotInCluster(LabError):
    """The cluster has no such object."""


@dataclass(frozen=True)
class Kubectl:
    """`kubectl` with a namespace."""

    namespace: str

    def command(self, *words: str) -> list[str]:
        """The command line."""
        return ["kubectl", "--namespace", self.namespace, *words]

    def run(self, *words: str, document: dict[str, Any] | None = None, accepted: tuple[int, ...] = (0,)) -> str:
        """The output of a command; `document` is its input, `accepted` the exit codes that are no error.

        Raises NotInCluster or LabError, with kubectl's last line.
        """
        try:
            done = subprocess.run(
                self.command(*words),
                input=None if document is None else json.dumps(document),
                capture_output=True,
                text=True,
                timeout=_SECONDS,
                check=False,
                env=child_processes.variables(),
            )
        except FileNotFoundError as error:
            raise LabError(f"kubectl is not installed; {_INSTALL}") from error
        except subprocess.TimeoutExpired as error:
            raise LabError(
                f"kubectl {words[0]}: no answer within {_SECONDS} s; look at 'kubectl cluster-info'"
            ) from error
        if done.returncode in accepted and not (done.returncode and done.stderr):
            return done.stdout
        lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        problem = f"kubectl {words[0]}: {lines[-1] if lines else f'exit code {done.returncode}'}"
        if "(NotFound)" in problem:
            raise NotInCluster(problem)
        raise LabError(f"{problem}; KUBECONFIG={os.environ.get('KUBECONFIG', '')!r} and its context name the cluster")

    def get(self, *words: str) -> dict[str, Any]:
        """An object, or a list of them in `items`. Raises NotInCluster or LabError."""
        found: dict[str, Any] = json.loads(self.run("get", *words, "--output", "json"))
        return found


SECRET = "clientlab-token"  # noqa: S105 - its name
SERVERS = ("flask", "aiohttp", "proxy", "lab")
"""What has to be ready before a run, by the label `app.kubernetes.io/component`."""

_COMPONENT = "app.kubernetes.io/component"
_APPLY = "apply the manifests first: kubectl apply -k deploy/kubernetes/demo"
_READY_SECONDS = 120.0
_TROUBLED_SECONDS = 20.0
_NO_VOLUME, _VOLUME_SECONDS = "unbound immediate PersistentVolumeClaims", 60.0
"""A volume may be made, or bound, on demand."""
_AWAY_SECONDS = 300.0
_FORWARD_SECONDS = 20.0
_LOOK_SECONDS = 1.0
_Answer = TypeVar("_Answer")


class NotForwarded(LabError):
    """`kubectl port-forward` found no lab that runs."""


def installed(kubectl: Kubectl) -> dict[str, Any]:
    """The template of the workers' Jobs. Raises LabError where the namespace has no lab."""
    try:
        kubectl.get("statefulset", "lab")
        return kubectl.get("cronjob", TEMPLATE)
    except NotInCluster as error:
        raise LabError(f"namespace {kubectl.namespace!r} has no lab ({error}); {_APPLY}, or name another") from error


def token_of(kubectl: Kubectl) -> str:
    """The token that the lab shares with its workers. Without one, a new one is stored. Raises LabError."""
    try:
        found = kubectl.get("secret", SECRET)
    except NotInCluster:
        drawn = secrets.token_urlsafe(32)
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": SECRET}, "stringData": {"token": drawn}}
        kubectl.run("create", "--filename", "-", document=secret)
        return drawn
    try:
        return base64.b64decode(found["data"]["token"]).decode()
    except (KeyError, ValueError) as error:
        raise LabError(f"Secret {SECRET} has no key 'token'; delete it, and a new one is made") from error


def await_ready(kubectl: Kubectl) -> None:
    """Wait until the lab and its servers are ready. Raises LabError with the cause where they can't be."""
    began = time.monotonic()
    while True:
        waiting = _not_ready(kubectl)
        if not waiting:
            return
        late = time.monotonic() - began
        troubles = [cause for cause in waiting.values() if cause]
        patience = _VOLUME_SECONDS if troubles and _NO_VOLUME in troubles[0] else _TROUBLED_SECONDS
        if (troubles and late > patience) or late > _READY_SECONDS:
            raise LabError(troubles[0] if troubles else f"not ready within {late:.0f} s: {', '.join(waiting)}")
        time.sleep(_LOOK_SECONDS)


def _not_ready(kubectl: Kubectl) -> dict[str, str]:
    """Component → why it is not ready; empty where no reason is known."""
    found = kubectl.get("pods", "--selector", f"{_COMPONENT} in ({','.join(SERVERS)})")["items"]
    waiting = dict.fromkeys(SERVERS, "")
    for pod in found:
        component, conditions = pod["metadata"]["labels"][_COMPONENT], pod.get("status", {}).get("conditions", ())
        if any((one["type"], one["status"]) == ("Ready", "True") for one in conditions):
            waiting.pop(component, None)
        elif (trouble := trouble_of(pod)) and component in waiting:
            waiting[component] = trouble.cause
    return waiting


class ForwardedLab:
    """The lab's API through a port of this machine, which is forwarded anew when the lab's pod was replaced."""

    def __init__(self, kubectl: Kubectl, token: str, say: Callable[[str], None]) -> None:
        self._kubectl = kubectl
        self._token = token
        self._say = say
        self._process: subprocess.Popen[bytes] | None = None
        self._client: LabClient | None = None

    @classmethod
    @contextlib.contextmanager
    def opened(cls, kubectl: Kubectl, say: Callable[[str], None]) -> Iterator[ForwardedLab]:
        """The lab of a namespace, when it is ready. Raises LabError."""
        installed(kubectl)
        token = token_of(kubectl)
        await_ready(kubectl)
        lab = cls(kubectl, token, say)
        try:
            yield lab
        finally:
            lab.close()

    def post(self, path: str, document: dict[str, Any]) -> dict[str, Any]:
        """The answer to a document, which is sent once. Raises LabError or Refused."""
        try:
            answer = self._forwarded().post(path, document)
        except LOST_ERRORS as error:
            raise LabError(f"the lab does not answer: {error}; look at 'kubectl logs lab-0'") from error
        return answer or {}

    def get(self, path: str) -> bytes:
        """The JSON of a page, when the lab answers. Raises Refused, or IncompleteRun after minutes without one."""
        return self._insist(lambda client: client.get(path, 60.0))

    def document(self, path: str) -> dict[str, Any]:
        """The same, read."""
        found: dict[str, Any] = json.loads(self.get(path))
        return found

    def close(self) -> None:
        """Forward no more."""
        if self._process is not None:
            child_processes.stop(self._process, 1.0)
        self._process = self._client = None

    def _insist(self, ask: Callable[[LabClient], _Answer]) -> _Answer:
        began, said = time.monotonic(), ""
        while True:
            try:
                return ask(self._forwarded())
            except (*LOST_ERRORS, NotForwarded) as error:
                self.close()
                why = self._why() or str(error)
                if time.monotonic() - began > _AWAY_SECONDS:
                    raise IncompleteRun(f"the lab is away for {_AWAY_SECONDS:.0f} s: {why}") from error
                if why != said:
                    self._say(f"the lab is away: {why}")
                said = why
                time.sleep(_LOOK_SECONDS)

    def _why(self) -> str:
        with contextlib.suppress(LabError):
            return _not_ready(self._kubectl).get("lab", "")
        return ""

    def _forwarded(self) -> LabClient:
        if self._client is None or self._process is None or self._process.poll() is not None:
            self.close()
            self._process, port = _forward(self._kubectl)
            self._client = LabClient(f"http://127.0.0.1:{port}", self._token)
        return self._client


def _forward(kubectl: Kubectl) -> tuple[subprocess.Popen[bytes], int]:
    """A process that forwards a free port of this machine to the lab's, and that port. Raises NotForwarded."""
    command = kubectl.command("port-forward", "service/lab", ":8080", "--address", "127.0.0.1")
    process = child_processes.start(command, Path(os.devnull), child_processes.variables(), stdout=subprocess.PIPE)
    assert process.stdout is not None  # noqa: S101 - a pipe, as wanted above
    output, lines, first = process.stdout, list[bytes](), threading.Event()

    def read() -> None:  # to the end: kubectl writes a line for each connection
        with output:
            for line in output:
                lines[:] = lines or [line]
                first.set()
        first.set()

    threading.Thread(target=read, name="port-forward", daemon=True).start()
    first.wait(_FORWARD_SECONDS)
    port = lines[0].decode().partition("127.0.0.1:")[2].partition(" ")[0] if lines else ""
    if not port.isdigit():
        child_processes.stop(process, 1.0)
        raise NotForwarded("kubectl port-forward service/lab: no port is forwarded; is pod lab-0 running?")
    return process, int(port)


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
