"""The stack on a real engine: the demo runs, Prometheus counts it, and nothing is left."""

from __future__ import annotations

import json
import subprocess

import pytest

from running import eventually

pytestmark = [pytest.mark.real, pytest.mark.timeout(900)]  # waits are bounded by 300 s; the first test builds images


def test_the_demo_runs_to_its_end_and_prints_its_table(stack, run):
    assert {trial["arm"]: trial["reason"] for trial in run["trials"] if trial["status"] != "done"} == {}
    assert len({trial["arm"] for trial in run["trials"]}) == 12
    printed = stack.compose("logs", "--no-log-prefix", "lab").stdout
    assert "req/s" in printed
    assert "httpx-async@workers" in printed


def test_prometheus_has_counted_the_requests_of_the_run_file(stack, run):
    """To the request, by arm and outcome, for the last trial of each worker: its page shows that one still."""
    last = {trial["strategy"]: trial for trial in run["trials"]}.values()
    expected = {(trial["arm"], "ok"): trial["requests"] - sum(trial["errors"].values()) for trial in last}
    expected |= {(trial["arm"], kind): count for trial in last for kind, count in trial["errors"].items()}
    arms = {trial["arm"] for trial in last}

    def counted() -> dict[tuple[str, str], int]:
        rows = stack.prometheus('sum by (arm, outcome) (clientlab_requests_total{run="first"})')
        found = {(row["metric"]["arm"], row["metric"]["outcome"]): int(row["value"][1]) for row in rows}
        return {key: count for key, count in found.items() if count and key[0] in arms}

    eventually(lambda: counted() == expected, f"{expected}, not {counted()}")


def test_everything_is_scraped(stack):
    eventually(lambda: {target["health"] for target in stack.targets()} == {"up"}, "every target up")
    jobs = [target["labels"]["job"] for target in stack.targets()]
    assert {job: jobs.count(job) for job in set(jobs)} == {
        "clients": 9, "upstreams": 2, "proxy": 1, "exporter": 1, "prometheus": 1,
    }  # fmt: skip


def test_a_run_of_its_own_prints_its_table(stack):
    """`docker compose run lab run …` measures on the same workers, and `report last` shows it once more."""
    stack.lab("run", "-t", "urllib3", "-n", "50", "--rounds", "1", "--route", "proxy-tls", "--name", "second")
    assert [(trial["status"], trial["requests"]) for trial in stack.document("second")["trials"]] == [("done", 50)]
    assert "urllib3" in stack.lab("report", "second")


def test_only_the_lab_and_its_workers_reach_the_scheduler(stack):
    """Neither this machine, nor upstreams, proxy or Prometheus: they share no network with it."""
    services = json.loads(stack.compose("--profile", "link", "config", "--format", "json").stdout)["services"]
    beside = {name for name, service in services.items() if "control" in service["networks"]}
    assert beside == {"scheduler", "lab", *(name for name in services if name.startswith("client"))}
    assert "ports" not in services["scheduler"]
    (network,) = json.loads(subprocess.check_output(["docker", "inspect", stack.container("scheduler")]))[0][
        "NetworkSettings"
    ]["Networks"].values()
    code = f"import socket; socket.create_connection(({network['IPAddress']!r}, 8786), 3)"
    reach = {
        name: stack.compose("exec", "-T", name, "python3", "-c", code, check=False).returncode == 0
        for name in ("flask", "exporter", "client")
    }
    assert reach == {"flask": False, "exporter": False, "client": True}


def test_down_leaves_nothing(new_project):
    project = new_project()
    project.up("scheduler", "exporter", "prometheus")
    project.compose("down", "-v", "--timeout", "1")
    for kind in ("ps -a", "volume ls", "network ls"):
        words = ["docker", *kind.split(), "-q", "--filter", f"label=com.docker.compose.project={project.name}"]
        assert subprocess.run(words, capture_output=True, text=True, check=True).stdout == ""
