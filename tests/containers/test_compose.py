"""The lab in containers, on a real engine: what happens if a part is killed, and what a container may do."""

from __future__ import annotations

import json
import subprocess

import pytest

from containers.compose import LONG
from running import eventually

pytestmark = [pytest.mark.real, pytest.mark.release, pytest.mark.timeout(900)]  # their waits are bounded by 300 s each

UP_AND_WAIT = ("up", "-d", "--wait", "--wait-timeout", "120", "--pull", "never", "--no-build")


def test_each_container_is_soon_known_to_answer_and_then_no_check_starts_a_process(lab):
    """`docker compose up --wait` ends once all answer. The next check of each container sleeps in it."""
    lab.compose(*UP_AND_WAIT, *lab.scale())
    for container in lab.containers():
        service, health = container["Config"]["Labels"]["com.docker.compose.service"], container["State"]["Health"]
        assert (health["Status"], health["Log"][-1]["ExitCode"]) == ("healthy", 0), service
        eventually(lambda found=container: _sleeps(found["Id"]), f"{service}: a check that sleeps", 20)


def test_no_container_can_do_more_than_it_needs(lab):
    """No root, nothing writable but volumes and memory, no capability, no engine's socket, limits, loopback only."""
    for container in lab.containers():
        assert container["Config"]["User"] not in {"", "0", "root"}, container["Name"]
    profiles = ["--profile", "terminal", "--profile", "link"]
    services = json.loads(lab.compose(*profiles, "config", "--format", "json").stdout)["services"]
    assert {"grafana", "client", "terminal", "link"} <= set(services)
    for name, service in services.items():
        assert service["cap_drop"] == ["ALL"], name
        assert service.get("cap_add", []) in ([], ["NET_BIND_SERVICE"]), name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert (service["read_only"], service.get("privileged", False)) == (True, False), name
        assert {port["host_ip"] for port in service.get("ports", [])} <= {"127.0.0.1"}, name
        assert int(service["mem_limit"]) > 0, name
        assert 0 < service["pids_limit"] <= 8192, name
        for mount in service.get("volumes", []):
            assert mount["type"] != "bind" or mount["read_only"], mount["source"]
            assert "docker.sock" not in mount["source"], name


def test_what_is_measured_can_not_reach_the_lab_and_forms_need_its_key(lab):
    """Upstreams, proxy and Grafana share no network with it. A worker does, and cannot stop a run."""
    services = json.loads(lab.compose("--profile", "terminal", "config", "--format", "json").stdout)["services"]
    for name in ("flask", "aiohttp", "proxy", "grafana", "terminal"):
        assert set(services[name]["networks"]).isdisjoint(services["lab"]["networks"]), name
    code = "import socket; socket.create_connection(({!r}, {}), 5)"
    ways = [("flask", address_of(lab, "lab"), 8080), ("client", "lab", 8080), ("client", "flask", 8000)]
    tried = [lab.compose("exec", "-T", one, "python3", "-c", code.format(*other), check=False) for one, *other in ways]
    reach = [done.returncode == 0 for done in tried]
    assert reach == [False, True, True]


def address_of(project, service: str) -> str:
    """The address of a service's container in its one network."""
    (container,) = [
        found for found in project.containers() if found["Config"]["Labels"]["com.docker.compose.service"] == service
    ]
    (network,) = container["NetworkSettings"]["Networks"].values()
    return network["IPAddress"]


def a_part_of_the_demo(*strategies):
    """A request for a run of these strategies, directly and through the proxy: one trial of each."""
    return {"experiment": "demo", "rounds": 1, "strategies": strategies}


def test_a_worker_that_is_killed_in_its_trial_fails_it_and_the_run_goes_on(lab):
    """The trial is given once more at the end; by then the worker is back."""
    worker = lab.container("client-aiohttp-workers")  # asked for now: Compose takes longer to answer than the trial
    run = lab.api("/api/runs", a_part_of_the_demo("aiohttp@workers", "pycurl"))["run"]
    eventually(lambda: _has_its_turn(lab, "aiohttp@workers"), "its turn", LONG)
    subprocess.run(["docker", "kill", worker], capture_output=True, check=True)
    lab.up("client-aiohttp-workers")
    lab.idle()
    trials = [trial for trial in lab.run(run)["trials"] if trial["strategy"] == "aiohttp@workers"]
    lost = [trial["reason"] for trial in trials if trial["status"] == "lost"]
    assert ["was not heard of" in reason for reason in lost] == [True]
    assert {trial["arm"] for trial in trials if trial["status"] == "done"} == {trial["arm"] for trial in trials}


def test_a_lab_that_is_killed_goes_on_with_its_run(lab):
    """Nothing that was done is lost, and nothing is done twice."""
    run = lab.api("/api/runs", a_part_of_the_demo("aiohttp@workers", "pycurl", "requests-session"))["run"]
    eventually(lambda: lab.state()["done"] >= 3, "three trials", LONG)
    lab.compose("kill", "lab")
    lab.up("lab")
    eventually(lambda: lab.answers() and lab.state()["run"] == run, "the same run", 60)
    lab.idle()
    found = lab.run(run)
    done = [trial["arm"] for trial in found["trials"] if trial["status"] == "done"]
    assert len(done) == len(set(done)) == 6


def test_a_run_can_be_asked_for_in_a_terminal(lab):
    """`docker compose run --rm terminal run …` measures with the containers' upstreams and prints its table or JSON."""
    words = ["run", "-T", "--rm", "terminal", "run", "-t", "urllib3", "-n", "50", "--route", "proxy-tls", "--json"]
    document = json.loads(lab.compose(*words).stdout)
    assert [(trial["status"], trial["requests"]) for trial in document["trials"]] == [("done", 50)] * 3
    assert document["run"] in [row["run"] for row in lab.api("/api/runs")]


def test_a_trial_is_divided_among_the_generic_containers(lab):
    """`--scale client=2` starts them. They begin at one moment, and Prometheus has counted the requests of both."""
    up = ["up", "-d", "--pull", "never", "--no-build", "--no-recreate"]
    wanted = {"experiment": "demo", "quick": True, "rounds": 1, "strategies": ["urllib3@threads"], "shards": 2}
    try:
        lab.compose(*up, "--scale", "client=2", "client")
        name = lab.api("/api/runs", wanted)["run"]
        assert lab.idle()["run"] == name
        trials = lab.run(name)["trials"]
        requests = sum(trial["requests"] for trial in trials)
        expression = f'sum(max_over_time(clientlab_requests_total{{run="{name}"}}[1h]))'
        # A new container is scraped when Prometheus has learned of it; its worker waits for that, if it is left alive.
        eventually(lambda: [int(row["value"][1]) for row in lab.prometheus(expression)] == [requests], "the count", 30)
    finally:
        lab.compose(*up, "--scale", "client=1", "client")
    assert [trial["status"] for trial in trials] == ["done"] * 2, [trial["reason"] for trial in trials]
    for trial in trials:
        assert len({shard["host"] for shard in trial["by_shard"]}) == 2
        assert sum(shard["requests"] for shard in trial["by_shard"]) == trial["requests"]
        assert trial["upstream_use"]["requests"] == trial["requests"]


def test_the_rules_give_what_they_should(lab):
    """Promtool runs the rules against series whose quantiles are known."""
    words = ["run", "-T", "--rm", "--no-deps", "--entrypoint", "/bin/promtool", "prometheus"]
    lab.compose(*words, "check", "config", "/etc/prometheus/prometheus.yml")
    done = lab.compose(*words, "test", "rules", "/etc/prometheus/rules.test.yml")
    assert "SUCCESS" in done.stdout + done.stderr


def _sleeps(container: str) -> bool:
    """Whether a health check waits in the container."""
    done = subprocess.run(["docker", "top", container, "-o", "pid,args"], capture_output=True, text=True, check=True)
    return any(line.split()[1:] == ["sleep", "300"] for line in done.stdout.splitlines())


def _has_its_turn(project, strategy: str) -> bool:
    """Whether the strategy's worker was given its trial."""
    return any(one["state"] == "measuring" and one["strategies"] == [strategy] for one in project.state()["workers"])
