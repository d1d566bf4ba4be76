"""Driving the stack of compose.yaml: the engine's own commands, run files, Prometheus' API."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import urllib.parse
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

from running import ROOT


def why_not() -> str | None:
    """Why no containers can be run here; None where they can."""
    if shutil.which("docker") is None:
        return "docker is not installed"
    for command, says in (
        (["docker", "info"], "the engine does not answer"),
        (["docker", "compose", "version"], "Compose v2 is missing"),
    ):
        done = subprocess.run(command, capture_output=True, check=False)
        if done.returncode:
            return says
    return None


@dataclass
class Project:
    """One Compose project of the repository's compose.yaml, on ports of its own."""

    name: str
    env_file: Path
    ports: dict[str, int]
    leave_out: list[str] = field(default_factory=list)

    def compose(self, *words: str, check: bool = True) -> subprocess.CompletedProcess:
        """`docker compose WORDS`; with its output in the error where it fails."""
        command = ["docker", "compose", "-p", self.name, "--env-file", ".env", "--env-file", str(self.env_file), *words]
        variables = {name: value for name, value in os.environ.items() if name not in {"RUN", "LINK_RTT"}}
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env=variables)
        assert not check or done.returncode == 0, f"{' '.join(words)}: {done.stderr[-2000:]}"
        return done

    def up(self, *words: str) -> None:
        """Start services, or all of them, from the images that are here, and wait until they answer."""
        without = () if words else [word for service in self.leave_out for word in ("--scale", f"{service}=0")]
        self.compose("up", "-d", "--wait", "--pull", "never", "--no-build", *without, *words)

    def lab(self, *words: str, check: bool = True) -> str:
        """What `clientlab WORDS` prints in a container of its own, beside what is up."""
        return self.compose("run", "--rm", "--no-deps", "-T", "lab", *words, check=check).stdout

    def document(self, run: str) -> dict:
        """A run file."""
        return json.loads(self.compose("exec", "-T", "exporter", "cat", f"/results/{run}/run.json").stdout)

    def container(self, service: str) -> str:
        """The id of a service's container."""
        return self.compose("ps", "-aq", service).stdout.strip()

    def containers(self) -> list[dict]:
        """What the engine knows of each of the project's containers."""
        ids = self.compose("ps", "-aq").stdout.split()
        return json.loads(subprocess.run(["docker", "inspect", *ids], capture_output=True, check=True).stdout)

    def wait(self, service: str) -> int:
        """Wait for the end of a service's container; its exit code."""
        words = ["docker", "wait", self.container(service)]
        return int(subprocess.run(words, capture_output=True, check=True, timeout=300).stdout)

    def write(self, service: str, path: str, text: str) -> None:
        """Write a file in a volume of a service, from a container of its own."""
        command = ["docker", "run", "-i", "--rm", "--volumes-from", self.container(service), "--entrypoint", "sh"]
        command += ["clientlab-clients", "-c", f"mkdir -p $(dirname {path}); cat >{path}"]
        subprocess.run(command, input=text.encode(), check=True)

    def prometheus(self, expression: str, **more: str) -> list[dict]:
        """The result of a query."""
        words = urllib.parse.urlencode({"query": expression, **more})
        path = "query_range" if "step" in more else "query"
        url = f"http://127.0.0.1:{self.ports['PROMETHEUS_PORT']}/api/v1/{path}?{words}"
        try:
            with urllib.request.urlopen(url, timeout=20) as answer:
                return json.load(answer)["data"]["result"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{expression}: {error.read().decode()}") from error

    def targets(self) -> list[dict]:
        """What Prometheus scrapes."""
        url = f"http://127.0.0.1:{self.ports['PROMETHEUS_PORT']}/api/v1/targets"
        with urllib.request.urlopen(url, timeout=20) as answer:
            return json.load(answer)["data"]["activeTargets"]
