"""One lab in containers for all tests of this folder, built once and gone at the end."""

from __future__ import annotations

import json
import secrets
import subprocess

import pytest

from containers.compose import Project, why_not
from optional_programs import leave_out
from running import eventually, free_ports

PORTS = (
    "GRAFANA_PORT", "LAB_PORT", "PROMETHEUS_PORT", "FLASK_PORT", "AIOHTTP_PORT", "PROXY_FLASK_PORT",
    "PROXY_AIOHTTP_PORT", "PROXY_FLASK_TLS_PORT", "PROXY_AIOHTTP_TLS_PORT",
)  # fmt: skip


@pytest.fixture(scope="session")
def engine() -> None:
    """A container engine; a machine without one leaves these tests out and says why, which is a failure in CI."""
    reason = why_not()
    if reason is not None:
        leave_out(f"left out: {reason}")


@pytest.fixture(scope="session")
def new_project(engine, tmp_path_factory):  # noqa: ARG001 - needed first
    """Makes projects with ports of their own; images are built before the first."""
    made: list[Project] = []

    def make(**environment: str) -> Project:
        ports = dict(zip(PORTS, free_ports(len(PORTS)), strict=True))
        env_file = tmp_path_factory.mktemp("compose") / "test.env"
        env_file.write_text("".join(f"{name}={value}\n" for name, value in {**ports, **environment}.items()))
        project = Project(f"clientlab-test-{secrets.token_hex(4)}", env_file, ports)
        grafana = json.loads(project.compose("config", "--format", "json").stdout)["services"]["grafana"]["image"]
        if subprocess.run(["docker", "image", "inspect", grafana], capture_output=True, check=False).returncode:
            project.leave_out.append("grafana")  # it is nowhere to be had without a registry
        if not made:
            project.compose("build", "flask", "lab")
        made.append(project)
        return project

    yield make
    for project in made:
        project.compose("down", "-v", "--timeout", "1", check=False)


@pytest.fixture(scope="session")
def finished(new_project):
    """A lab that has been through the demo's short form: the project and the run's document."""
    project = new_project(EXPERIMENT="demo", ROUNDS="1")
    project.up()
    state = project.idle()
    return project, project.run(state["run"])


@pytest.fixture
def lab(finished):
    """That lab with all its containers up and no run in progress."""
    project, _ = finished
    project.up()
    project.idle()
    return project


FAULTY = """\
question = "What do errors look like?"
strategies = ["urllib3"]
routes = ["proxy"]
rounds = 1
[workloads.refused]
path = "/status/503"
requests = 100
rate = 25
"""


@pytest.fixture(scope="session")
def troubled(finished):
    """The document of another run of that lab: an open load, all of whose requests were answered with 503.

    All go through the proxy: for 5 s, nothing else is sent, which a panel waits for.

    The lab keeps this experiment: with another one, the next `up` would make it anew, and it would do the demo again.
    """
    project, _ = finished
    project.up()
    project.idle()
    project.write("lab", "/results/faulty.toml", FAULTY)
    project.environment["EXPERIMENT"] = "/results/faulty.toml"
    project.up("lab")
    eventually(lambda: project.answers() and project.state()["experiment"] == "faulty", "the run", 60)
    return project.run(project.idle()["run"])
