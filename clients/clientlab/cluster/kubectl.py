"""Calls of `kubectl`. It finds the cluster and its credentials as always: by KUBECONFIG and its present context."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from typing import Any

from clientlab.errors import LabError

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
                env=os.environ,
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
