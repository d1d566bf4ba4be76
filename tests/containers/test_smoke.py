"""The lab in containers, on a real engine: the demo runs, Prometheus counts it, and nothing is left."""

from __future__ import annotations

import subprocess

import pytest

from running import eventually

pytestmark = [pytest.mark.real, pytest.mark.timeout(900)]  # waits are bounded by 300 s; the first test builds images


def test_the_short_demo_runs_to_its_end(finished):
    """All twelve arms were measured, each by the container of its strategy."""
    _, run = finished
    assert len({trial["arm"] for trial in run["trials"]}) == 12
    assert {trial["arm"]: trial["reason"] for trial in run["trials"] if trial["status"] != "done"} == {}
    assert run["status"] == "done"


def test_prometheus_has_counted_every_request_of_the_run_file(finished):
    """To the request, by arm and outcome: the last values of each trial were scraped before they vanished."""
    project, run = finished
    expression = f'sum by (arm, outcome) (max_over_time(clientlab_requests_total{{run="{run["run"]}"}}[1h]))'

    def counted() -> dict[tuple[str, str], int]:
        rows = [(row["metric"], int(row["value"][1])) for row in project.prometheus(expression)]
        return {(labels["arm"], labels["outcome"]): count for labels, count in rows if count}

    expected = {(trial["arm"], "ok"): trial["requests"] - sum(trial["errors"].values()) for trial in run["trials"]}
    expected |= {(trial["arm"], kind): count for trial in run["trials"] for kind, count in trial["errors"].items()}
    # The last trial's result is known to the lab a moment before its last values are scraped.
    eventually(lambda: counted() == expected, f"{expected}, not {counted()}")


def test_everything_is_scraped(lab):
    """Each worker, both upstreams, the proxy, the lab and Prometheus itself."""
    workers = len([name for name in lab.compose("ps", "--services").stdout.split() if name.startswith("client")])
    eventually(lambda: {target["health"] for target in lab.targets()} == {"up"}, "every target up")
    jobs = [target["labels"]["job"] for target in lab.targets()]
    assert {job: jobs.count(job) for job in set(jobs)} == {
        "clients": workers, "upstreams": 2, "proxy": 1, "lab": 1, "prometheus": 1,
    }  # fmt: skip


def test_down_leaves_nothing(new_project):
    """No container, no volume, no network."""
    project = new_project()
    project.up("lab", "prometheus", "client")
    project.compose("down", "-v", "--timeout", "1")
    for kind in ("ps -a", "volume ls", "network ls"):
        words = ["docker", *kind.split(), "-q", "--filter", f"label=com.docker.compose.project={project.name}"]
        assert subprocess.run(words, capture_output=True, text=True, check=True).stdout == ""
