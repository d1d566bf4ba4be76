"""Drives the stack of compose.yaml: the engine's commands, run files,
Prometheus' API.
"""

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
    """Return why no containers can run here; None if they can."""
    if shutil.which("docker") is None:
        return "docker is not installed"
    needs = {
        "info": "the engine does not answer",
        "compose version": "Compose v2 is missing",
    }
    for words, reason in needs.items():
        if subprocess.run(
            ["docker", *words.split()], capture_output=True, check=False
        ).returncode:
            return reason
    return None


@dataclass
class Project:
    """A Compose project of the repository's compose.yaml, with other ports."""

    name: str
    env_file: Path
    ports: dict[str, int]
    leave_out: list[str] = field(default_factory=list)

    def compose(self, *words: str, check: bool = True) -> subprocess.CompletedProcess:
        """Run `docker compose WORDS`. If it fails, the error holds its output."""
        command = [
            "docker",
            "compose",
            "-p",
            self.name,
            "--env-file",
            ".env",
            "--env-file",
            str(self.env_file),
            *words,
        ]
        variables = {
            name: value
            for name, value in os.environ.items()
            if name not in {"RUN", "LINK_RTT"}
        }
        done = subprocess.run(
            command,
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
            env=variables,
        )
        assert not check or done.returncode == 0, (
            f"{' '.join(words)}: {done.stderr[-2000:]}"
        )
        return done

    def up(self, *words: str) -> None:
        """Start services, or all of them, from the images on this machine, and wait
        until they answer.
        """
        without = (
            ()
            if words
            else [
                word
                for service in self.leave_out
                for word in ("--scale", f"{service}=0")
            ]
        )
        self.compose(
            "up", "-d", "--wait", "--pull", "never", "--no-build", *without, *words
        )

    def lab(self, *words: str, check: bool = True) -> str:
        """Run `clientlab WORDS` in a new container beside the stack, and return what it
        prints.
        """
        return self.compose(
            "run", "--rm", "--no-deps", "-T", "lab", *words, check=check
        ).stdout

    def services(self) -> dict[str, dict]:
        """Return the services as Compose resolves them, including the link."""
        return json.loads(
            self.compose("--profile", "link", "config", "--format", "json").stdout
        )["services"]

    def document(self, run: str) -> dict:
        """Return a run file."""
        return json.loads(
            self.compose(
                "exec", "-T", "exporter", "cat", f"/results/{run}/run.json"
            ).stdout
        )

    def container(self, service: str) -> str:
        """Return the id of a service's container."""
        return self.compose("ps", "-aq", service).stdout.strip()

    def containers(self) -> list[dict]:
        """Return what the engine knows about each of the project's containers."""
        ids = self.compose("ps", "-aq").stdout.split()
        return json.loads(
            subprocess.run(
                ["docker", "inspect", *ids], capture_output=True, check=True
            ).stdout
        )

    def wait(self, service: str) -> int:
        """Wait for the end of a service's container, and return its exit code."""
        words = ["docker", "wait", self.container(service)]
        return int(
            subprocess.run(words, capture_output=True, check=True, timeout=300).stdout
        )

    def write(self, service: str, path: str, text: str) -> None:
        """Write a file in a volume of a service, from a new container."""
        command = [
            "docker",
            "run",
            "-i",
            "--rm",
            "--volumes-from",
            self.container(service),
            "--entrypoint",
            "sh",
        ]
        command += [
            "clientlab-clients",
            "-c",
            f"mkdir -p $(dirname {path}); cat >{path}",
        ]
        subprocess.run(command, input=text.encode(), check=True)

    def prometheus(self, expression: str, **more: str) -> list[dict]:
        """Return the result of a query, over a time range if `more` has a step."""
        words = urllib.parse.urlencode({"query": expression, **more})
        try:
            return self._get(f"{'query_range' if 'step' in more else 'query'}?{words}")[
                "result"
            ]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{expression}: {error.read().decode()}") from error

    def targets(self) -> list[dict]:
        """Return what Prometheus scrapes."""
        return self._get("targets")["activeTargets"]

    def _get(self, path: str) -> dict:
        url = f"http://127.0.0.1:{self.ports['PROMETHEUS_PORT']}/api/v1/{path}"
        with urllib.request.urlopen(url, timeout=20) as answer:
            return json.load(answer)["data"]
