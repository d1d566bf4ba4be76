"""Driving the lab's containers: the engine's own commands, the lab's API, Prometheus' API."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import urllib.parse
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

from running import eventually

ROOT = Path(__file__).resolve().parents[2]
LONG = 300.0


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
    """One Compose project of the repository's compose.yaml, on ports of its own.

    `environment`: values of its variables, in place of those of its file.
    """

    name: str
    env_file: Path
    ports: dict[str, int]
    leave_out: list[str] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)

    def compose(
        self, *words: str, check: bool = True, env: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess:
        """`docker compose WORDS`; with its output in the error where it fails."""
        command = ["docker", "compose", "-p", self.name, "--env-file", ".env", "--env-file", str(self.env_file), *words]
        variables = {**os.environ, **self.environment, **(env or {})}
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env=variables)
        assert not check or done.returncode == 0, f"{' '.join(words)}: {done.stderr[-2000:]}"
        return done

    def up(self, *services: str) -> None:
        """Start what is not running, in the background, from the images that are here."""
        self.compose("up", "-d", "--pull", "never", "--no-build", *(() if services else self.scale()), *services)

    def scale(self) -> list[str]:
        """The options of `up` that leave out services without an image."""
        return [word for service in self.leave_out for word in ("--scale", f"{service}=0")]

    def container(self, service: str) -> str:
        """The id of a service's container."""
        return self.compose("ps", "-aq", service).stdout.strip()

    def containers(self) -> list[dict]:
        """What the engine knows of each of the project's containers."""
        ids = self.compose("ps", "-aq").stdout.split()
        return json.loads(subprocess.run(["docker", "inspect", *ids], capture_output=True, check=True).stdout)

    def write(self, service: str, path: str, text: str) -> None:
        """Write a file in a service's container."""
        words = [
            "docker",
            "exec",
            "-i",
            self.container(service),
            "bash",
            "-c",
            f'mkdir -p "$(dirname {path})"; cat >{path}',
        ]
        subprocess.run(words, input=text.encode(), check=True)

    def api(self, path: str, body: dict | None = None) -> dict:
        """The lab's answer."""
        url = f"http://127.0.0.1:{self.ports['LAB_PORT']}{path}"
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self.token()}"} if body else {}
        data = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(urllib.request.Request(url, data, headers), timeout=20) as answer:
            return json.load(answer)

    def token(self) -> str:
        """The workers' token, from the file that the lab wrote."""
        return self.compose("exec", "lab", "cat", "/run/clientlab/token").stdout.strip()

    def answers(self) -> bool:
        """Whether the lab is there."""
        try:
            return bool(self.api("/api/state"))
        except OSError:
            return False

    def state(self) -> dict:
        """What the lab does now."""
        return self.api("/api/state")

    def ended(self) -> int:
        """Trials that have ended, well or not."""
        state = self.state()
        return state["done"] + state["failed"]

    def idle(self) -> dict:
        """Wait until no run is in progress."""
        eventually(lambda: not self.state()["measuring"], "the run's end", LONG)
        return self.state()

    def run(self, name: str) -> dict:
        """A run's document."""
        return self.api(f"/api/runs/{name}")

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
