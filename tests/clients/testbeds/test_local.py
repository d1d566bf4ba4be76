"""The home without containers: what it starts, and that it stops all of it, however it is left."""

from __future__ import annotations

import contextlib
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

from clientlab.errors import LabError, ServerLost
from clientlab.measuring.connections import PeerAddress
from clientlab.results.surroundings import cpu_usable
from clientlab.testbeds import local
from clientlab.testbeds.local import LocalTestbed, Ports
from clientlab.testbeds.scrape import get
from clientlab.testbeds.server_process import WorkerCounts
from clientlab.upstreams import UPSTREAMS
from clientlab.workload.workload import Workload
from clients.measured import is_alive
from running import caddy_path, eventually
from signal_handlers import IN_A_TERMINAL, handling

pytestmark = pytest.mark.real

SMALL = WorkerCounts(flask=1, aiohttp=1, threads=4)


def family(pid: int | None = None) -> list[psutil.Process]:
    """All that a process (this one) has started, and what that has."""
    return psutil.Process(pid).children(recursive=True)


@pytest.fixture(scope="module", autouse=True)
def _with_caddy():
    """Most of these tests start the proxy."""
    caddy_path()


@pytest.fixture(scope="module")
def testbed(tmp_path_factory):
    """Both upstreams and the proxy, on free ports."""
    with LocalTestbed(("flask", "aiohttp"), local.ROUTES, tmp_path_factory.mktemp("logs"), SMALL) as running:
        yield running


@pytest.mark.parametrize("route", local.ROUTES)
def test_every_upstream_answers_on_every_route(route, testbed):
    """At the URL and the port that the home tells; only the proxy says that it is one."""
    for upstream in UPSTREAMS:
        endpoint = testbed.endpoint(upstream, route)
        secure = route == "proxy-tls"
        assert testbed.base_url(upstream, route) == f"http{'s' * secure}://127.0.0.1:{endpoint.port}"
        assert testbed.address(upstream, route) == PeerAddress(endpoint.port)
        assert (testbed.ca_file(upstream, route) is not None) == secure
        with contextlib.closing(endpoint.connect(timeout=60)) as connection:
            connection.request("GET", "/todos/7")
            response = connection.getresponse()
            assert (response.status, b'"id"' in response.read()) == (200, True)
            assert ("Caddy" in (response.headers.get("Via") or "")) == (route != "direct")
        assert testbed.trouble(upstream, route, Workload()) is None


@pytest.mark.parametrize("upstream", UPSTREAMS)
def test_a_reading_counts_requests_over_either_route(upstream, testbed):
    """The upstream's counters rise by what was sent; the proxy's are read only where it is in between."""
    for route in local.ROUTES:
        before = testbed.reading(upstream, route)
        for _ in range(5):
            assert get(testbed.endpoint(upstream, route), "/")[0] == 200
        after = testbed.reading(upstream, route)
        assert after.upstream.requests - before.upstream.requests == 5
        assert (after.proxy is not None) == (route != "direct")
        assert (after.upstream.processes, after.upstream.cores) == (1, cpu_usable())
        assert after.upstream.slots == (4 if upstream == "flask" else None)
        assert after.upstream.held_seconds > before.upstream.held_seconds
        assert route == "direct" or after.proxy.held_seconds > before.proxy.held_seconds
        assert route == "direct" or after.proxy.cores >= 1


def test_the_ca_is_kept_in_a_private_folder_and_goes_with_the_proxy(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    with LocalTestbed(["aiohttp"], ["proxy-tls"], tmp_path / "logs", SMALL) as testbed:
        ca_file = Path(testbed.ca_file("aiohttp", "proxy-tls"))
        assert stat.S_IMODE(ca_file.parent.stat().st_mode) == 0o700
    assert not ca_file.parent.exists()
    assert [path.name for path in tmp_path.iterdir()] == ["logs"]


@pytest.mark.parametrize(
    ("program", "number"), [("gunicorn", signal.SIGKILL), ("gunicorn", signal.SIGSTOP), ("caddy", signal.SIGKILL)]
)
def test_a_server_that_has_ended_or_is_frozen_is_started_again_at_its_port(program, number, tmp_path):
    """Before the next trial: with the same addresses, so that the proxy finds its upstream."""
    before = family()
    with LocalTestbed(["aiohttp"], ["direct", "proxy"], tmp_path, SMALL) as testbed:
        places = [testbed.endpoint("aiohttp", route) for route in ("direct", "proxy")]
        started = [one for one in family() if one not in before and one.ppid() == os.getpid()]
        (server,) = [one for one in started if program in " ".join(one.cmdline())]
        server.send_signal(number)
        eventually(lambda: lost(testbed), "the loss is seen")
        if number == signal.SIGKILL:
            assert re.search(rf"SIGKILL.*{'aiohttp' if program == 'gunicorn' else 'proxy'}\.log", lost(testbed))
        if program == "caddy":
            trouble = testbed.trouble("aiohttp", "proxy", Workload())
            assert trouble.startswith(f"{places[1].url}/healthz ")
            assert testbed.trouble("aiohttp", "direct", Workload()) is None
        testbed.serve("aiohttp")
        assert not lost(testbed)
        assert [testbed.endpoint("aiohttp", route) for route in ("direct", "proxy")] == places
        assert [get(place, "/")[0] for place in places] == [200, 200]


def lost(testbed) -> str:
    """What its own check says of a server that is lost."""
    try:
        testbed.check()
    except ServerLost as error:
        return str(error)
    return ""


def test_a_server_that_does_not_start_is_told_with_its_last_words(tmp_path):
    """Here because of a setting; what had started before it is stopped."""
    before = family()
    wrong = replace(SMALL, backlog=-1)
    with pytest.raises(LabError, match=r"BACKLOG.*aiohttp\.log"):
        LocalTestbed(["aiohttp"], ["direct"], tmp_path, wrong).__enter__()
    assert family() == before


def test_settings_of_the_caller_do_not_reach_the_upstreams(tmp_path, monkeypatch):
    """A delay in the user's shell would slow every run."""
    monkeypatch.setenv("MOCKUPSTREAM_DELAY", "5s")
    monkeypatch.setenv("GUNICORN_CMD_ARGS", "--nonsense")
    with LocalTestbed(["aiohttp"], ["direct"], tmp_path, SMALL) as testbed:
        assert get(testbed.endpoint("aiohttp", "direct"), "/", timeout=4.0)[0] == 200


@pytest.mark.parametrize(("port", "name"), [("flask", "flask"), ("proxy_aiohttp_tls", "proxy with TLS for aiohttp")])
def test_a_port_that_is_taken_is_named_with_its_server(port, name, tmp_path):
    before = family()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        taken = listener.getsockname()[1]
        with pytest.raises(LabError, match=f"port {taken} for {name}:"):
            LocalTestbed(["flask"], ["direct", "proxy"], tmp_path, SMALL, Ports(**{port: taken})).__enter__()
    assert family() == before


def test_without_the_upstreams_the_lab_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "gunicorn", None)
    with pytest.raises(LabError, match=r"gunicorn .*pip install clientlab"):
        LocalTestbed(["aiohttp"], ["direct"], tmp_path, SMALL).__enter__()


def up() -> tuple[subprocess.Popen, list[psutil.Process], list[str]]:
    """A lab process with both upstreams and the proxy, all that it started, and what it printed."""
    free = [f"--{name.replace('_', '-')}-port=0" for name in Ports.__dataclass_fields__]
    command = [sys.executable, "-m", "clientlab", "up", "-c", "4", *free]
    lab = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    lines = [lab.stdout.readline().rstrip() for _ in range(len(UPSTREAMS) * len(local.ROUTES) + 2)]
    return lab, family(lab.pid), lines


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 0), (signal.SIGKILL, -signal.SIGKILL)])
def test_no_process_outlives_the_lab(number, code):
    if number == signal.SIGKILL and sys.platform != "linux":
        pytest.skip("parent-death signals are Linux'")
    with handling(IN_A_TERMINAL):
        lab, started, printed = up()
    with lab:
        *sites, ca, logs = printed
        names = [tuple(line.split()[:2]) for line in sites]
        assert names == [(upstream, route) for upstream in UPSTREAMS for route in local.ROUTES]
        assert Path(ca.removeprefix("CA of proxy-tls: ")).is_file()
        assert len(started) >= 5  # two gunicorns, their workers, Caddy
        lab.send_signal(number)
        rest, errors = lab.communicate(timeout=60)
    assert lab.returncode == code
    eventually(lambda: not any(map(is_alive, started)), "no process is left")
    if code == 0:
        assert (rest, errors) == ("stopped\n", "")
        assert not Path(logs.removeprefix("logs: ").partition(";")[0]).exists()
