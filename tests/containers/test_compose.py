"""The lab in containers, on a real engine."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import tomllib

import pytest
import yaml

from clientlab.strategies import EVERY_CLIENT, EXECUTORS, LISTED
from containers.compose import LONG, ROOT
from running import eventually

pytestmark = pytest.mark.timeout(900)  # their waits are bounded by 300 s each; the images are built within the first

UP_AND_WAIT = ("up", "-d", "--wait", "--wait-timeout", "120", "--pull", "never", "--no-build")
THIRD_PARTY = {"proxy", "prometheus", "grafana"}


def test_the_short_demo_runs_to_its_end(finished):
    """All twelve arms were measured, each by the container of its strategy."""
    _, run = finished
    assert run["status"] == "done"
    assert len({trial["arm"] for trial in run["trials"]}) == 12
    assert {trial["status"] for trial in run["trials"]} == {"done"}


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
    eventually(lambda: counted() == expected, f"{expected}, not {counted()}", 10)


def test_everything_is_scraped(lab):
    """Each worker, both upstreams, the proxy, the lab and Prometheus itself."""
    workers = len([name for name in lab.compose("ps", "--services").stdout.split() if name.startswith("client-")])
    eventually(lambda: {target["health"] for target in lab.targets()} == {"up"}, "every target up", 60)
    jobs = [target["labels"]["job"] for target in lab.targets()]
    assert {job: jobs.count(job) for job in set(jobs)} == {
        "clients": workers, "upstreams": 2, "proxy": 1, "lab": 1, "prometheus": 1,
    }  # fmt: skip


def test_each_container_is_soon_known_to_answer_and_then_no_check_starts_a_process(lab):
    """`docker compose up --wait` ends once all answer. The next check of each container sleeps in it."""
    lab.compose(*UP_AND_WAIT, *lab.scale())
    for container in lab.containers():
        service, health = container["Config"]["Labels"]["com.docker.compose.service"], container["State"]["Health"]
        assert (health["Status"], health["Log"][-1]["ExitCode"]) == ("healthy", 0), service
        eventually(lambda found=container: _sleeps(found["Id"]), f"{service}: a check that sleeps", 20)


def test_a_container_that_was_started_again_is_soon_healthy_again(lab):
    """Its first check does not sleep, though the last one before was good."""
    lab.compose("restart", "--timeout", "10", "client-any")
    lab.compose(*UP_AND_WAIT, "--no-deps", "client-any")
    (container,) = [found for found in lab.containers() if found["Id"] == lab.container("client-any")]
    assert container["State"]["Health"]["Status"] == "healthy"


def test_no_container_can_do_more_than_it_needs(lab):
    """No root, nothing writable but volumes and memory, no capability, no engine's socket, limits, loopback only."""
    for container in lab.containers():
        service, host = container["Config"]["Labels"]["com.docker.compose.service"], container["HostConfig"]
        user = container["Config"]["User"]
        assert user not in {"", "0", "root"}, service
        assert host["ReadonlyRootfs"], service
        assert host["CapDrop"] == ["ALL"], service
        assert (host["CapAdd"] or []) in ([], ["NET_BIND_SERVICE"], ["CAP_NET_BIND_SERVICE"]), service
        assert "no-new-privileges:true" in host["SecurityOpt"], service
        assert not host["Privileged"], service
        assert host["Memory"] > 0, service
        assert 0 < host["PidsLimit"] <= 8192, service
        assert host["LogConfig"]["Config"]["max-size"] == "5m", service
        assert not any("docker.sock" in mount["Source"] for mount in container["Mounts"]), service
        addresses = [bound["HostIp"] for ports in (host["PortBindings"] or {}).values() for bound in ports]
        assert set(addresses) <= {"127.0.0.1"}, service


def test_services_that_are_not_up_are_as_confined(lab):
    """Grafana and those of the profile, as Compose would start them."""
    profiles = ["--profile", "all", "--profile", "terminal", "--profile", "link"]
    services = json.loads(lab.compose(*profiles, "config", "--format", "json").stdout)["services"]
    assert {"grafana", "client-urllib3", "terminal", "link"} <= set(services)
    for name, service in services.items():
        assert service["cap_drop"] == ["ALL"], name
        assert service.get("cap_add", []) in ([], ["NET_BIND_SERVICE"]), name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert (service["read_only"], service.get("privileged", False)) == (True, False), name
        assert {port["host_ip"] for port in service.get("ports", [])} <= {"127.0.0.1"}, name
        assert int(service["mem_limit"]) > 0, name
        assert 0 < service["pids_limit"] <= 8192, name
    grafana = services["grafana"]["environment"]
    assert (grafana["GF_AUTH_ANONYMOUS_ENABLED"], grafana["GF_AUTH_ANONYMOUS_ORG_ROLE"]) == ("true", "Viewer")
    assert grafana["GF_SECURITY_DISABLE_INITIAL_ADMIN_CREATION"] == "true"


def test_what_is_measured_can_not_reach_the_lab_and_forms_need_its_key(lab):
    """Upstreams, proxy and Grafana share no network with it. A worker does, and cannot stop a run."""
    services = json.loads(lab.compose("--profile", "terminal", "config", "--format", "json").stdout)["services"]
    for name in ("flask", "aiohttp", "proxy", "grafana", "terminal"):
        assert set(services[name]["networks"]).isdisjoint(services["lab"]["networks"]), name
    code = "import socket; socket.create_connection(({!r}, {}), 5)"
    ways = [("flask", address_of(lab, "lab"), 8080), ("client-any", "lab", 8080), ("client-any", "flask", 8000)]
    tried = [lab.compose("exec", "-T", one, "python3", "-c", code.format(*other), check=False) for one, *other in ways]
    reach = [done.returncode == 0 for done in tried]
    assert reach == [False, True, True]
    stop = (
        "import urllib.request; urllib.request.urlopen(urllib.request.Request('http://lab:8080/stop', b'key=guess', "
        "{'Sec-Fetch-Site': 'same-origin'}))"
    )
    done = lab.compose("exec", "-T", "client-any", "python3", "-c", stop, check=False)
    assert "HTTP Error 403" in done.stderr
    assert re.search(rf"http://localhost:{lab.ports['LAB_PORT']}/#key=\S{{43}}", lab.compose("logs", "lab").stdout)


def address_of(project, service: str) -> str:
    """The address of a service's container in its one network."""
    (container,) = [
        found for found in project.containers() if found["Config"]["Labels"]["com.docker.compose.service"] == service
    ]
    (network,) = container["NetworkSettings"]["Networks"].values()
    return network["IPAddress"]


def test_without_env_it_is_said_what_is_missing(engine):  # noqa: ARG001 - needed first
    """No image without a name is asked for, and no port is drawn."""
    words = ["docker", "compose", "--env-file", "/dev/null", "config", "-q"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert ".env is missing" in done.stderr


def test_a_port_that_is_taken_is_named(new_project):
    """By the engine, and nothing is left half begun that `down` would not take away."""
    project = new_project()
    with socket.create_server(("127.0.0.1", project.ports["FLASK_PORT"])):
        done = project.compose("up", "-d", "--pull", "never", "--no-build", "flask", check=False)
    assert done.returncode != 0
    assert str(project.ports["FLASK_PORT"]) in done.stderr


def test_what_is_not_ours_is_mounted_for_reading_only(lab):
    """The repository's files can't be changed from inside."""
    for container in lab.containers():
        for mount in container["Mounts"]:
            assert mount["Type"] != "bind" or not mount["RW"], mount["Destination"]


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


def test_a_proxy_that_is_away_for_a_while_costs_its_trials_only(lab):
    """Trials through it have errors or fail; the direct ones are whole, and the run ends."""
    run = lab.api("/api/runs", a_part_of_the_demo("aiohttp@workers", "pycurl", "requests-session"))["run"]
    eventually(lambda: " · proxy · " in (lab.state()["trial"] or ""), "a trial through the proxy", LONG)
    lab.compose("kill", "proxy")
    ended = lab.ended()
    eventually(lambda: lab.ended() > ended, "the trial's end", LONG)
    lab.up("proxy")
    lab.idle()
    trials = lab.run(run)["trials"]
    assert {trial["status"] for trial in trials if trial["route"] == "direct"} == {"done"}
    assert any(trial["status"] == "failed" or trial["errors"] for trial in trials if trial["route"] == "proxy")


def test_a_run_can_be_asked_for_in_a_terminal(lab):
    """`docker compose run --rm terminal run …` measures with the containers' upstreams and prints its table or JSON."""
    words = ["run", "-T", "--rm", "terminal", "run", "-t", "urllib3", "-n", "50", "--route", "proxy-tls", "--json"]
    document = json.loads(lab.compose(*words).stdout)
    assert [(trial["status"], trial["requests"]) for trial in document["trials"]] == [("done", 50)] * 3
    assert document["run"] in [row["run"] for row in lab.api("/api/runs")]


def test_the_stack_has_a_link_if_one_is_asked_for(lab):
    """Kept connections then take its round trip for each request, on every route, and the run file names it."""
    env = {"LINK_RTT": "20ms", "LINK_BANDWIDTH": "100mbit"}
    ways = ["--route", "direct", "--route", "proxy-tls"]
    words = ["run", "-T", "--rm", "terminal", "run", "-t", "urllib3", "-n", "20", *ways, "--rounds", "1", "--json"]
    try:
        lab.compose("--profile", "link", "up", "-d", "--wait", "--pull", "never", "--no-build", "link", env=env)
        for _ in range(3):  # a busy machine adds to a median; none can take the round trip from it
            trials = json.loads(lab.compose(*words, env=env).stdout)["trials"]
            assert [trial["status"] for trial in trials] == ["done"] * 2
            medians = [trial["latency_seconds"]["p50"] for trial in trials]
            assert min(medians) >= 0.02
            if max(medians) < 0.06:
                break
    finally:
        lab.compose("--profile", "link", "rm", "-s", "-f", "link")
    assert [trial["link"] for trial in trials] == [
        {"rtt": 0.02, "bandwidth": 1e8, "buffer": 250_000, "faults": None}
    ] * 2
    assert max(medians) < 0.06


def test_a_trial_is_divided_over_the_containers_of_its_strategy(lab):
    """Which `--scale` starts. They begin at one moment, and Prometheus has counted the requests of both."""
    up = ["up", "-d", "--pull", "never", "--no-build", "--no-recreate"]
    wanted = {"experiment": "demo", "quick": True, "rounds": 1, "strategies": ["aiohttp@workers"], "shards": 2}
    try:
        lab.compose(*up, "--scale", "client-aiohttp-workers=2", "client-aiohttp-workers")
        name = lab.api("/api/runs", wanted)["run"]
        assert lab.idle()["run"] == name
        trials = lab.run(name)["trials"]
        requests = sum(trial["requests"] for trial in trials)
        expression = f'sum(max_over_time(clientlab_requests_total{{run="{name}"}}[1h]))'
        # A new container is scraped when Prometheus has learned of it; its worker waits for that, if it is left alive.
        eventually(lambda: [int(row["value"][1]) for row in lab.prometheus(expression)] == [requests], "the count", 30)
    finally:
        lab.compose(*up, "--scale", "client-aiohttp-workers=1", "client-aiohttp-workers")
    assert [trial["status"] for trial in trials] == ["done"] * 2, [trial["reason"] for trial in trials]
    for trial in trials:
        assert len({shard["host"] for shard in trial["by_shard"]}) == 2
        assert sum(shard["requests"] for shard in trial["by_shard"]) == trial["requests"]
        assert trial["upstream_use"]["requests"] == trial["requests"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["-e", "EXPERIMENT=none", "lab"], "experiment 'none': neither a bundled one"),
        (["-e", "CLIENTLAB_TOKEN=wrong", "client-any"], "token"),
        (["-e", "AIOHTTP_ADDRESS=nowhere", "client-any"], "AIOHTTP_ADDRESS"),
    ],
)
def test_what_can_not_go_on_ends_with_a_line(words, says, lab):
    """An unknown experiment, a wrong token, an address that is none: exit code 2."""
    done = lab.compose("run", "-T", "--rm", "--no-deps", *words, check=False)
    assert done.returncode == 2, done.stderr
    assert says in done.stderr + done.stdout


def test_the_rules_give_what_they_should(lab):
    """Promtool runs the rules against series whose quantiles are known."""
    words = ["run", "-T", "--rm", "--no-deps", "--entrypoint", "/bin/promtool", "prometheus"]
    lab.compose(*words, "check", "config", "/etc/prometheus/prometheus.yml")
    done = lab.compose(*words, "test", "rules", "/etc/prometheus/rules.test.yml")
    assert "SUCCESS" in done.stdout + done.stderr


def test_down_leaves_nothing(new_project):
    """No container, no volume, no network."""
    project = new_project()
    project.up("lab", "prometheus", "client-urllib3")  # the last is of a profile
    project.compose("--profile", "all", "down", "-v", "--timeout", "1")
    for kind in ("ps -a", "volume ls", "network ls"):
        words = ["docker", *kind.split(), "-q", "--filter", f"label=com.docker.compose.project={project.name}"]
        assert subprocess.run(words, capture_output=True, text=True, check=True).stdout == ""


@pytest.mark.usefixtures("finished")
def test_images_hold_no_compiler_and_are_small():
    """Above their base: the servers' 200 MB at most, the clients' 350 MB, as the engine counts."""

    def size(image: str) -> int:
        return json.loads(
            subprocess.run(["docker", "image", "inspect", image], capture_output=True, check=True).stdout
        )[0]["Size"]

    base = size(settings()["PYTHON_IMAGE"])
    assert size("clientlab-servers") - base < 200e6
    assert size("clientlab-clients") - base < 350e6
    for image in ("clientlab-servers", "clientlab-clients"):
        words = ["docker", "run", "--rm", "--entrypoint", "bash", image, "-c", "command -v gcc cc uv"]
        assert subprocess.run(words, capture_output=True, text=True, check=False).stdout == ""


def settings() -> dict[str, str]:
    """The names and values of .env."""
    lines = (ROOT / ".env").read_text(encoding="utf-8").splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


def test_every_strategy_has_a_container_and_the_demos_are_up_by_default():
    """All from one anchor; those of the demo without a profile, and one that takes what no other does."""
    services = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))["services"]
    clients = {name: service for name, service in services.items() if name.startswith("client-")}
    asked = {service["command"][2]: name for name, service in clients.items()}
    assert set(asked) == {"*"} | {
        name
        for name, found in LISTED.items()
        if EVERY_CLIENT[found.client].extra == EXECUTORS[found.executor].extra == "all"
        and not EVERY_CLIENT[found.client].program
    }
    by_default = {name for name, service in clients.items() if "profiles" not in service}
    demo = tomllib.loads((ROOT / "clients/clientlab/experiments/demo.toml").read_text(encoding="utf-8"))
    strategies = {*demo["strategies"], *(arm["strategy"] for arm in demo["arms"].values()), "*"}
    assert by_default == {asked[name] for name in strategies}


def test_images_of_others_are_pinned_in_one_place():
    """In .env, by version; the Dockerfiles' own default is the same Python."""
    pinned = {name: value for name, value in settings().items() if name.endswith("_IMAGE")}
    assert all(re.search(r":v?\d+\.\d+", value) for value in pinned.values())
    for folder in ("servers", "clients"):
        text = (ROOT / folder / "Dockerfile").read_text(encoding="utf-8")
        assert re.findall(r"^FROM (\S+:\S+)", text, re.MULTILINE) == [pinned["PYTHON_IMAGE"]]


def test_every_service_says_in_a_sentence_what_it_is():
    """Above it, but for the rows of clients, which share one."""
    lines = (
        (ROOT / "compose.yaml")
        .read_text(encoding="utf-8")
        .split("\nservices:\n")[1]
        .split("\nvolumes:\n")[0]
        .splitlines()
    )
    for before, line in zip(["", *lines], lines, strict=False):
        if re.match(r"  [a-z][\w-]*:$", line):
            assert before.strip().startswith("#"), line


def _sleeps(container: str) -> bool:
    """Whether a health check waits in the container."""
    done = subprocess.run(["docker", "top", container, "-o", "pid,args"], capture_output=True, text=True, check=True)
    return any(line.split()[1:] == ["sleep", "300"] for line in done.stdout.splitlines())


def _has_its_turn(project, strategy: str) -> bool:
    """Whether the strategy's worker was given its trial."""
    return any(one["state"] == "measuring" and one["strategies"] == [strategy] for one in project.state()["workers"])
