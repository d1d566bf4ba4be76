"""The stack on a real engine: the demo runs, Prometheus counts it, and
nothing is left.
"""

from __future__ import annotations

import json
import subprocess
from collections import Counter

import pytest

from running import eventually

pytestmark = [
    pytest.mark.real,
    pytest.mark.timeout(900),
]  # waits are bounded by 300 s; the first test builds images


def test_the_demo_runs_to_its_end_and_prints_its_table(stack, run):
    assert {
        trial["planned"]["arm"]: trial["reason"]
        for trial in run["trials"]
        if trial["status"] != "done"
    } == {}
    assert len({trial["planned"]["arm"] for trial in run["trials"]}) == 12
    printed = stack.compose("logs", "--no-log-prefix", "lab").stdout
    assert "req/s" in printed
    assert "httpx2-async@workers" in printed


def test_prometheus_has_counted_the_requests_of_the_run_file(stack, run):
    """To the request, by arm and outcome, over all trials."""
    expected = Counter()
    for trial in run["trials"]:
        arm = trial["planned"]["arm"]
        figures = trial["figures"]
        expected[arm, "ok"] += figures["requests"] - sum(figures["errors"].values())
        expected.update(
            {(arm, kind): count for kind, count in figures["errors"].items()}
        )

    def counted() -> dict[tuple[str, str], int]:
        rows = stack.prometheus(
            'sum by (arm, outcome) (clientlab_requests_total{run="first"})'
        )
        found = {
            (row["metric"]["arm"], row["metric"]["outcome"]): int(row["value"][1])
            for row in rows
        }
        return {key: count for key, count in found.items() if count}

    eventually(lambda: counted() == expected, f"{expected}, not {counted()}")


def test_everything_is_scraped(stack):
    eventually(
        lambda: {target["health"] for target in stack.targets()} == {"up"},
        "every target up",
    )
    jobs = Counter(target["labels"]["job"] for target in stack.targets())
    assert jobs.pop("clients") >= 9  # the test of divided trials adds one
    assert jobs == {"upstreams": 2, "proxy": 1, "exporter": 1, "prometheus": 1}


def test_another_run_measures_on_the_same_workers(stack):
    stack.lab(
        "run",
        "-t",
        "urllib3",
        "-n",
        "50",
        "--rounds",
        "1",
        "--route",
        "proxy-tls",
        "--name",
        "second",
    )
    (trial,) = stack.document("second")["trials"]
    assert trial["status"] == "done"
    assert trial["figures"]["requests"] == 50
    assert "urllib3" in stack.lab("report", "second")


def test_only_the_lab_and_its_workers_reach_the_scheduler(stack):
    services = stack.services()
    beside = {
        name for name, service in services.items() if "control" in service["networks"]
    }
    assert beside == {
        "scheduler",
        "lab",
        *(name for name in services if name.startswith("client")),
    }
    assert "ports" not in services["scheduler"]
    (network,) = json.loads(
        subprocess.check_output(["docker", "inspect", stack.container("scheduler")])
    )[0]["NetworkSettings"]["Networks"].values()
    code = (
        f"import socket; socket.create_connection(({network['IPAddress']!r}, 8786), 3)"
    )
    reach = {
        name: stack.compose(
            "exec", "-T", name, "python3", "-c", code, check=False
        ).returncode
        == 0
        for name in ("flask", "exporter", "client")
    }
    assert reach == {"flask": False, "exporter": False, "client": True}


def test_down_leaves_nothing(new_project):
    project = new_project()
    project.up("scheduler", "exporter", "prometheus")
    project.compose("down", "-v", "--timeout", "1")
    for kind in ("ps -a", "volume ls", "network ls"):
        words = [
            "docker",
            *kind.split(),
            "-q",
            "--filter",
            f"label=com.docker.compose.project={project.name}",
        ]
        assert (
            subprocess.run(words, capture_output=True, text=True, check=True).stdout
            == ""
        )
