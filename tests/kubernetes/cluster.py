"""A lab on a real cluster for tests: its manifests in a namespace of its own, and what the cluster knows of it."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from clientlab.cluster.lab_access import ForwardedLab, Kubectl
from clientlab.cluster.workers import RUN_LABEL, run_label
from clientlab.results.document import Run
from clientlab.results.store import Store
from running import ROOT, eventually

MANIFESTS = ROOT / "deploy" / "kubernetes"
OVERLAYS = ("demo", "monitoring")
IMAGES = ("clientlab-clients", "clientlab-servers")
LONG = 300.0


def why_not() -> str | None:
    """Why no cluster can be used; None where one can."""
    if shutil.which("kubectl") is None:
        return "kubectl is not installed"
    done = subprocess.run(["kubectl", "get", "nodes"], capture_output=True, text=True, timeout=30, check=False)
    if done.returncode:
        return f"no cluster answers: {done.stderr.strip().splitlines()[-1]}"
    return None


@dataclass
class Cluster:
    """A namespace of the cluster. `folder`: for overlays and results."""

    namespace: str
    folder: Path

    @property
    def kubectl(self) -> Kubectl:
        return Kubectl(self.namespace)

    def overlay(self, name: str, **more: object) -> Path:
        """A kustomization of an overlay in this namespace. `more`: fields of the kustomization."""
        folder = self.folder / f"overlay-{name}"
        folder.mkdir(exist_ok=True)
        fields = {"namespace": self.namespace, "resources": [os.path.relpath(MANIFESTS / name, folder)], **more}
        (folder / "kustomization.yaml").write_text(json.dumps(fields), encoding="utf-8")
        return folder

    def call(self, *words: str, document: object = None) -> subprocess.CompletedProcess[str]:
        """`kubectl WORDS`; with its output in the error where it fails."""
        text = None if document is None else json.dumps(document)
        command = self.kubectl.command(*words)
        done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, f"{' '.join(words)}: {done.stderr[-2000:]}"
        return done

    def get(self, *words: str) -> dict:
        """An object, or a list of them in `items`."""
        return self.kubectl.get(*words)

    def ready(self) -> bool:
        """Whether all pods of upstreams, proxy and lab are ready."""
        pods = self.get("pods", "--selector", "app.kubernetes.io/component!=worker")["items"]
        conditions = [{one["type"]: one["status"] for one in pod["status"].get("conditions", [])} for pod in pods]
        return len(pods) == 4 and all(found.get("Ready") == "True" for found in conditions)

    def workers(self, run: str) -> list[dict]:
        """The pods of a run's workers."""
        return self.get("pods", "--selector", f"{RUN_LABEL}={run_label(run)}")["items"]

    @contextlib.contextmanager
    def lab(self):
        """The lab's API."""
        with ForwardedLab.opened(self.kubectl, print) as lab:
            yield lab

    def run(self, *words: str) -> KubeRun:
        """`clientlab kube run demo --quick --rounds 1 WORDS` in the background."""
        command = ["kube", "run", "demo", "--quick", "--rounds", "1", "--namespace", self.namespace]
        return KubeRun(self.folder / "results", [*command, *words])

    def sent_to(self, upstream: str) -> int:
        """How many requests an upstream has counted since it was started."""
        selector = f"app.kubernetes.io/component={upstream}"
        (pod,) = self.get("pods", "--selector", selector)["items"]
        path = f"/api/v1/namespaces/{self.namespace}/pods/{pod['metadata']['name']}:8000/proxy/metrics"
        lines = self.call("get", "--raw", path).stdout.splitlines()
        return sum(int(float(line.split()[-1])) for line in lines if line.startswith("mockupstream_requests_total"))

    def change_worker(self, container: dict | None = None, pod: dict | None = None):
        """Change the template of the workers' Jobs for a while."""
        containers = {"containers": [{"name": "worker", **container}]} if container else {}
        return self._changed({"spec": {"jobTemplate": {"spec": {"template": {"spec": {**containers, **(pod or {})}}}}}})

    @contextlib.contextmanager
    def _changed(self, patch: dict):
        try:
            self.call("patch", "cronjob", "worker", "--patch", json.dumps(patch))
            yield
        finally:
            self.call("replace", "--filename", "-", document=_unversioned(self.template))

    def keep_template(self) -> None:
        """Remember the template as it was applied."""
        self.template = self.get("cronjob", "worker")


class KubeRun:
    """A `clientlab kube run` in the background, its lines with the seconds at which they came."""

    def __init__(self, results: Path, words: list[str]) -> None:
        results.mkdir(exist_ok=True)
        self._store = Store(results)
        self._log = results / f"{time.monotonic_ns()}.log"
        self._began = time.monotonic()
        with self._log.open("w") as output:
            command = [sys.executable, "-m", "clientlab", *words, "--out", str(results)]
            self.process = subprocess.Popen(command, stdout=output, stderr=output)

    @property
    def said(self) -> str:
        return self._log.read_text()

    @property
    def name(self) -> str:
        """The run's name, when the lab has begun it."""
        eventually(lambda: "\nrun 2" in f"\n{self.said}" or self.process.poll() is not None, "the run begins", LONG)
        return next(line for line in self.said.splitlines() if line.startswith("run 2")).split()[1]

    def seconds_until(self, words: str) -> float:
        """How long after its start the command has said these words."""
        eventually(lambda: words in self.said or self.process.poll() is not None, words, LONG)
        assert words in self.said, self.said
        return time.monotonic() - self._began

    def end(self) -> tuple[int, Run]:
        """The exit code, and the run as its file has it."""
        code = self.process.wait(LONG)
        assert "run file: " in self.said, self.said
        return code, self._store.read(self.name)


def _unversioned(found: dict) -> dict:
    metadata = {key: value for key, value in found["metadata"].items() if key not in {"resourceVersion", "uid"}}
    return {**found, "metadata": metadata}
