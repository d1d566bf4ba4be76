"""The stack on a real engine: what a container may do, divided trials, the link, and
Prometheus' rules.
"""

from __future__ import annotations

import pytest

pytestmark = [
    pytest.mark.real,
    pytest.mark.release,
    pytest.mark.timeout(900),
]  # their waits are bounded by 300 s each


def test_no_container_can_do_more_than_it_needs(stack):
    """No root, no capabilities, no engine's socket, limits, ports on loopback; only
    volumes and memory are writable.
    """
    for container in stack.containers():
        assert container["Config"]["User"] not in {"", "0", "root"}, container["Name"]
    services = stack.services()
    assert {"grafana", "client", "scheduler", "link"} <= set(services)
    for name, service in services.items():
        assert service["cap_drop"] == ["ALL"], name
        assert service.get("cap_add", []) in ([], ["NET_BIND_SERVICE"]), name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert (service["read_only"], service.get("privileged", False)) == (
            True,
            False,
        ), name
        assert {port["host_ip"] for port in service.get("ports", [])} <= {
            "127.0.0.1"
        }, name
        assert int(service["mem_limit"]) > 0, name
        assert 0 < service["pids_limit"] <= 8192, name
        for mount in service.get("volumes", []):
            assert mount["type"] != "bind" or mount["read_only"], mount["source"]
            assert "docker.sock" not in mount["source"], name


def test_a_trial_is_divided_among_the_generic_containers(stack):
    stack.up("--no-recreate", "--scale", "client=2", "client")
    words = [
        "-t",
        "urllib3@threads",
        "-n",
        "501",
        "-c",
        "4",
        "--rounds",
        "1",
        "--shards",
        "2",
        "--name",
        "divided",
    ]
    stack.lab("run", *words)
    (trial,) = stack.document("divided")["trials"]
    assert (trial["status"], trial["figures"]["requests"]) == ("done", 501), trial[
        "reason"
    ]
    assert len({shard["host"] for shard in trial["shards"]}) == 2
    assert (
        sum(shard["figures"]["requests"] for shard in trial["shards"])
        == trial["figures"]["requests"]
    )
    assert trial["servers"]["upstream"]["requests"] == trial["figures"]["requests"]


def test_trials_are_measured_behind_the_link(new_project):
    project = new_project(LINK_RTT="20ms")
    project.compose(
        "--profile",
        "link",
        "up",
        "-d",
        "--wait",
        "--no-build",
        "flask",
        "aiohttp",
        "proxy",
        "link",
    )
    project.up("scheduler", "client", "exporter")
    project.lab("run", "-t", "urllib3", "-n", "20", "--rounds", "1", "--name", "linked")
    (trial,) = project.document("linked")["trials"]
    assert trial["planned"]["link"]["rtt"] == 0.02
    assert trial["figures"]["latency_seconds"]["p50"] >= 0.02
