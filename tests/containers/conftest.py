"""One stack of containers for all tests of this folder.

Its images are built once, and all of it is removed.
"""

from __future__ import annotations

import secrets
import subprocess

import pytest

from containers.compose import Project, why_not
from optional_programs import leave_out
from running import free_ports

PORTS = (
    "GRAFANA_PORT",
    "PROMETHEUS_PORT",
    "FLASK_PORT",
    "AIOHTTP_PORT",
    "PROXY_FLASK_PORT",
    "PROXY_AIOHTTP_PORT",
    "PROXY_FLASK_TLS_PORT",
    "PROXY_AIOHTTP_TLS_PORT",
)


@pytest.fixture(scope="session")
def new_project(tmp_path_factory):
    """Makes projects with free ports. Images are built before the first."""
    if reason := why_not():
        leave_out(f"left out: {reason}")
    made: list[Project] = []

    def make(**environment: str) -> Project:
        ports = dict(zip(PORTS, free_ports(len(PORTS)), strict=True))
        env_file = tmp_path_factory.mktemp("compose") / "test.env"
        env_file.write_text(
            "".join(
                f"{name}={value}\n" for name, value in {**ports, **environment}.items()
            )
        )
        project = Project(f"clientlab-test-{secrets.token_hex(4)}", env_file, ports)
        grafana = project.services()["grafana"]["image"]
        if subprocess.run(
            ["docker", "image", "inspect", grafana], capture_output=True, check=False
        ).returncode:
            project.leave_out.append("grafana")  # only a registry has its image
        if not made:
            project.compose("build", "flask", "lab")
        made.append(project)
        return project

    yield make
    for project in made:
        project.compose(
            "--profile", "link", "down", "-v", "--timeout", "1", check=False
        )


@pytest.fixture(scope="session")
def stack(new_project):
    """A stack whose lab has measured the demo once: `up --wait` returns when everything
    answers.
    """
    project = new_project(RUN="demo --rounds 1 --name first")
    project.up()
    assert project.wait("lab") == 0, project.compose("logs", "lab").stdout
    return project


@pytest.fixture(scope="session")
def run(stack):
    return stack.document("first")
