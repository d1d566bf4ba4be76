"""The local testbed: what it starts, and that it stops all of it in every case."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import signal
import socket
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from clientlab.errors import IncompleteRun, LabError, ServerLost
from clientlab.machine.usage import cpu_usable
from clientlab.settings import UPSTREAMS, find_upstream
from clientlab.testbeds.local import ROUTES, LocalTestbed, check_upstreams
from clientlab.testbeds.servers import Endpoint, WorkerCounts, read_upstream
from clientlab.workload.workload import make_workload
from clients.measured import is_alive
from running import caddy_path, eventually
from signal_handlers import IN_A_TERMINAL, handling

SMALL = WorkerCounts(flask=1, aiohttp=1, threads=4)
real = pytest.mark.real


def descendants(pid: int | None = None) -> list[psutil.Process]:
    """All processes that a process (by default this one) has started,
    directly or not.
    """
    return psutil.Process(pid).children(recursive=True)


def why_lost(testbed) -> str:
    """What `check` says about a lost server; empty if none is lost."""
    try:
        testbed.check()
    except ServerLost as error:
        return str(error)
    return ""


@pytest.fixture(scope="module")
def testbed(tmp_path_factory):
    """Both upstreams and the proxy, on free ports."""
    caddy_path()
    folder = tmp_path_factory.mktemp("logs")
    with LocalTestbed(UPSTREAMS, ROUTES, folder, SMALL) as running:
        yield running


@real
@pytest.mark.parametrize("upstream", UPSTREAMS)
@pytest.mark.parametrize("route", ROUTES)
def test_every_upstream_answers_and_counts_requests_on_every_route(
    upstream, route, testbed
):
    endpoint = testbed.endpoint(upstream, route)
    address = testbed.address(upstream, route)
    assert address.url == endpoint.url
    assert address.port == endpoint.port
    assert (address.ca_file is not None) == (route == "proxy-tls")
    assert testbed.trouble(upstream, route, make_workload()) is None
    before = testbed.reading(upstream, route)
    with contextlib.closing(endpoint.connect(timeout=60)) as connection:
        for _ in range(5):
            connection.request("GET", "/todos/7")
            response = connection.getresponse()
            assert response.status == 200
            assert b'"id"' in response.read()
            via = response.headers.get("Via", "")
            assert ("Caddy" in via) == (route != "direct")
    after = testbed.reading(upstream, route)
    used = after.upstream
    assert used.requests - before.upstream.requests == 5
    assert used.processes == 1
    assert used.cores == cpu_usable()
    assert used.slots == (4 if upstream == "flask" else None)
    assert used.held_seconds > before.upstream.held_seconds
    if route == "direct":
        assert after.proxy is None
    else:
        assert after.proxy.held_seconds > before.proxy.held_seconds
        assert after.proxy.cores >= 1


@real
def test_servers_get_neither_the_settings_nor_the_folders_of_the_caller(
    tmp_path, monkeypatch
):
    """The CA is kept in a private folder, which is removed with the proxy."""
    caddy_path()
    monkeypatch.setenv("MOCKUPSTREAM_DELAY", "5s")
    monkeypatch.setenv("GUNICORN_CMD_ARGS", "--nonsense")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    routes = ["direct", "proxy-tls"]
    with LocalTestbed(["aiohttp"], routes, tmp_path / "logs", SMALL) as testbed:
        status, *_ = testbed.endpoint("aiohttp", "direct").get("/", timeout=4.0)
        assert status == 200
        ca_file = Path(testbed.address("aiohttp", "proxy-tls").ca_file)
        assert stat.S_IMODE(ca_file.parent.stat().st_mode) == 0o700
    assert not ca_file.parent.exists()
    assert [path.name for path in tmp_path.iterdir()] == ["logs"]


@real
def test_a_server_that_has_ended_is_restarted_at_its_port(tmp_path):
    caddy_path()
    before = descendants()

    def kill(program: str) -> None:
        (server,) = [
            process
            for process in descendants()
            if process not in before
            and process.ppid() == os.getpid()
            and program in " ".join(process.cmdline())
        ]
        server.kill()
        eventually(lambda: why_lost(testbed), "the loss is noticed")

    def restart() -> None:
        testbed.serve("aiohttp")
        assert not why_lost(testbed)
        assert testbed.endpoint("aiohttp", "direct") == direct
        assert testbed.endpoint("aiohttp", "proxy") == proxied
        for endpoint in (direct, proxied):
            status, *_ = endpoint.get("/")
            assert status == 200

    with LocalTestbed(["aiohttp"], ["direct", "proxy"], tmp_path, SMALL) as testbed:
        direct = testbed.endpoint("aiohttp", "direct")
        proxied = testbed.endpoint("aiohttp", "proxy")
        kill("gunicorn")
        assert re.search(r"SIGKILL.*aiohttp\.log", why_lost(testbed))
        restart()
        kill("caddy")
        assert re.search(r"SIGKILL.*proxy\.log", why_lost(testbed))
        trouble = testbed.trouble("aiohttp", "proxy", make_workload())
        assert trouble.startswith(f"{proxied.url}/healthz ")
        assert testbed.trouble("aiohttp", "direct", make_workload()) is None
        restart()


@real
def test_a_server_that_does_not_start_is_reported_with_its_last_words(tmp_path):
    before = descendants()
    impossible = replace(SMALL, backlog=-1)
    testbed = LocalTestbed(["aiohttp"], ["direct"], tmp_path, impossible)
    with pytest.raises(LabError, match=r"BACKLOG.*aiohttp\.log"):
        testbed.__enter__()
    assert descendants() == before


@real
@pytest.mark.parametrize(
    ("port", "name"),
    [("flask", "flask"), ("proxy_aiohttp_tls", "proxy with TLS for aiohttp")],
)
def test_a_port_that_is_taken_is_named_with_its_server(port, name, tmp_path):
    before = descendants()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        _, taken = listener.getsockname()
        ports = {port: taken}
        testbed = LocalTestbed(["flask"], ["direct", "proxy"], tmp_path, SMALL, ports)
        with pytest.raises(LabError, match=f"port {taken} for {name}:"):
            testbed.__enter__()
    assert descendants() == before


@real
def test_without_the_upstreams_the_lab_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "gunicorn", None)
    with pytest.raises(LabError, match=r"gunicorn .*pip install clientlab"):
        LocalTestbed(["aiohttp"], ["direct"], tmp_path, SMALL).__enter__()


@real
def test_counters_that_cannot_be_read_end_the_run():
    endpoint = Endpoint("127.0.0.1", 1)  # nothing listens at port 1
    with pytest.raises(IncompleteRun, match=endpoint.url):
        read_upstream(endpoint)


@real
def test_upstreams_with_settings_run_one_at_a_time_behind_the_proxy(tmp_path):
    caddy_path()
    special = {
        "flask?workers=2&worker_class=sync": (
            "gunicorn sync, 2 workers, a connection for each request"
        ),
        "flask?server=development": (
            "werkzeug's development server, a thread and a connection for each request"
        ),
    }
    with LocalTestbed(list(special), ["proxy"], tmp_path, SMALL) as testbed:
        assert testbed.programs().items() >= special.items()
        for upstream, workers in zip(special, (2, 1), strict=True):
            testbed.serve(upstream)
            before = testbed.reading(upstream, "proxy").upstream
            assert before.processes == workers
            status, *_ = testbed.endpoint(upstream, "proxy").get("/todos/1")
            assert status == 200
            after = testbed.reading(upstream, "proxy").upstream
            assert after.requests == before.requests + 1
    logs = {"flask-server-development.log", "flask-workers-2-worker-class-sync.log"}
    assert logs < {path.name for path in tmp_path.iterdir()}


@real
def test_the_proxy_is_restarted_at_its_ports_for_an_upstream_that_needs_other_times(
    tmp_path,
):
    caddy_path()
    usual = "aiohttp?any_path=true"
    short = "aiohttp?keep_alive=1&proxy_idle=1"
    routes = ["proxy", "proxy-tls"]
    with LocalTestbed([usual, short], routes, tmp_path, SMALL) as testbed:

        @contextlib.contextmanager
        def posted(upstream: str, path: str):
            """Send two requests, and yield the connection of the second."""
            testbed.serve(upstream)
            before = testbed.reading(upstream, "proxy")
            status, *_ = testbed.endpoint(upstream, "proxy-tls").get(path)
            assert status == 200
            connection = testbed.endpoint(upstream, "proxy").connect(timeout=60)
            with contextlib.closing(connection):
                connection.request("POST", path)
                assert connection.getresponse().read() == b'{"message": "hello"}\n'
                yield connection.sock
            growth = testbed.reading(upstream, "proxy").since(before)
            assert growth.upstream.requests == 2
            assert growth.proxy.cpu_seconds > 0

        with posted(short, "/") as connection:
            assert connection.recv(1) == b""
        with posted(usual, "/a/b") as connection:
            connection.settimeout(1.5)
            with pytest.raises(TimeoutError):
                connection.recv(1)


def test_the_surroundings_describe_the_settings_of_an_upstream():
    settings = "keep_alive=2&max_requests=1000&any_path=true&proxy_keep_alive=30"
    text = SMALL.describe(find_upstream(f"flask?{settings}"))
    assert "gthread" in text
    assert "for 2 s" in text
    assert "1000 requests" in text
    assert "any path" in text
    assert "for 300 s" in text
    assert "for 30 s" in text
    assert SMALL.describe(find_upstream("aiohttp")) == "gunicorn uvloop, 1 workers"


def test_settings_of_the_proxy_need_a_route_through_it():
    check_upstreams(
        {("aiohttp?proxy_idle=5", "direct"), ("aiohttp?proxy_idle=5", "proxy")}
    )
    with pytest.raises(LabError, match="proxy_idle=5"):
        check_upstreams({("aiohttp?proxy_idle=5", "direct")})


def test_the_proxy_cannot_lead_to_two_upstreams_of_a_framework():
    check_upstreams({("flask", "proxy"), ("flask?workers=2", "direct")})
    with pytest.raises(LabError, match=r"flask\?workers=2"):
        check_upstreams({("flask", "direct"), ("flask?workers=2", "proxy")})


@real
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 0), (signal.SIGKILL, -signal.SIGKILL)]
)
def test_no_process_outlives_the_lab(number, code):
    caddy_path()
    if number == signal.SIGKILL and sys.platform != "linux":
        pytest.skip("only Linux has parent-death signals")
    behind = ("flask", "aiohttp", "metrics", "flask-tls", "aiohttp-tls")
    names = ("flask", "aiohttp", *(f"proxy-{name}" for name in behind))
    ports = [f"--{name}-port=0" for name in names]
    command = [sys.executable, "-m", "clientlab", "up", "-c", "4", *ports]
    places = list(itertools.product(UPSTREAMS, ROUTES))
    pipe = subprocess.PIPE
    with handling(IN_A_TERMINAL):
        lab = subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True)
        lines = [lab.stdout.readline().rstrip() for _ in range(len(places) + 2)]
        started = descendants(lab.pid)
    *sites, ca, logs = lines
    with lab:
        assert [tuple(line.split()[:2]) for line in sites] == places
        assert Path(ca.removeprefix("CA of proxy-tls: ")).is_file()
        assert len(started) >= 5  # two gunicorns, their workers, Caddy
        lab.send_signal(number)
        rest, errors = lab.communicate(timeout=60)
    assert lab.returncode == code
    eventually(lambda: not any(map(is_alive, started)), "no process is left")
    if code == 0:
        assert rest == "stopped\n"
        assert errors == ""
        assert not Path(logs.removeprefix("logs: ").partition(";")[0]).exists()
