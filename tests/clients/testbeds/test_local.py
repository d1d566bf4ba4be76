"""The home without containers: what it starts, and that it stops all of it, however it is left."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import ssl
import stat
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import RemoteSettingsChanged
from h2.settings import SettingCodes

from clientlab.errors import LabError, ServerLost
from clientlab.measuring.connections import PeerAddress
from clientlab.results.surroundings import cpu_usable
from clientlab.running.busy_shares import MOST_STREAMS
from clientlab.testbeds import local
from clientlab.testbeds.local import LocalTestbed, Ports
from clientlab.testbeds.scrape import Endpoint, get
from clientlab.testbeds.server_process import WorkerCounts, workers_for
from clientlab.upstreams import UPSTREAMS
from clientlab.workload.workload import Workload
from running import caddy_path, eventually
from signal_handlers import IN_A_TERMINAL, handling

pytestmark = pytest.mark.real

SMALL = WorkerCounts(flask=1, aiohttp=1, threads=4)


def family(pid: int | None = None) -> list[psutil.Process]:
    """All that a process (this one) has started, and what that has."""
    return psutil.Process(pid).children(recursive=True)


def all_gone(processes) -> bool:
    """Whether each has ended; one that nobody has reaped yet has."""
    return all(not one.is_running() or one.status() == psutil.STATUS_ZOMBIE for one in processes)


def gone(processes) -> None:
    """Wait for the end of all of them."""
    eventually(lambda: all_gone(processes), "no process is left")


@pytest.fixture(scope="module", autouse=True)
def _with_caddy():
    """Most of these tests start the proxy."""
    caddy_path()


@pytest.fixture(scope="module")
def testbed(tmp_path_factory):
    """Both upstreams and the proxy, on free ports."""
    with LocalTestbed(("flask", "aiohttp"), local.ROUTES, tmp_path_factory.mktemp("logs"), SMALL) as running:
        yield running


@pytest.fixture
def taken():
    """A port of loopback on which something else listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


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


def test_the_proxy_announces_as_many_streams_of_http2_as_the_verdict_counts(testbed):
    """SETTINGS_MAX_CONCURRENT_STREAMS of the first frame that Caddy sends."""
    context = ssl.create_default_context(cafile=testbed.ca_file("aiohttp", "proxy-tls"))
    context.set_alpn_protocols(["h2"])
    address = "127.0.0.1", testbed.endpoint("aiohttp", "proxy-tls").port
    client = H2Connection(H2Configuration(client_side=True))
    client.initiate_connection()
    with context.wrap_socket(socket.create_connection(address, 20), server_hostname=address[0]) as connection:
        connection.sendall(client.data_to_send())
        settings = []
        while not settings:
            events = client.receive_data(connection.recv(65_536))
            settings = [event for event in events if isinstance(event, RemoteSettingsChanged)]
    assert settings[0].changed_settings[SettingCodes.MAX_CONCURRENT_STREAMS].new_value == MOST_STREAMS


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
        assert after.upstream.processes == 1
        assert after.upstream.slots == (4 if upstream == "flask" else None)
        assert after.upstream.held_seconds > before.upstream.held_seconds
        assert after.upstream.cores == cpu_usable()
        assert route == "direct" or after.proxy.held_seconds - before.proxy.held_seconds > 0
        assert route == "direct" or after.proxy.cores >= 1


def test_only_what_is_asked_for_is_started_and_all_of_it_is_stopped(tmp_path):
    """One upstream without proxy; its log is kept."""
    before = family()
    with LocalTestbed(["aiohttp", "aiohttp"], ["direct"], tmp_path / "logs", SMALL) as testbed:
        started = [one for one in family() if one not in before]
        assert len(started) == 2  # gunicorn and its worker
        port = testbed.endpoint("aiohttp", "direct").port
    assert all_gone(started)
    assert [path.name for path in (tmp_path / "logs").iterdir()] == ["aiohttp.log"]
    with pytest.raises(ConnectionRefusedError):
        get(Endpoint("127.0.0.1", port), "/healthz")


def test_the_ca_is_kept_in_a_private_folder_and_goes_with_the_proxy(tmp_path, monkeypatch):
    """Nothing is written into the user's home, and no key is left that could sign for this machine."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    with LocalTestbed(["aiohttp"], ["proxy-tls"], Path("logs"), SMALL) as testbed:
        ca_file = Path(testbed.ca_file("aiohttp", "proxy-tls"))
        assert ca_file.is_absolute()
        assert stat.S_IMODE(ca_file.parent.stat().st_mode) == 0o700
        assert ca_file.read_text().startswith("-----BEGIN CERTIFICATE-----")
        assert get(testbed.endpoint("aiohttp", "proxy-tls"), "/")[0] == 200
    assert not ca_file.parent.exists()
    assert [path.name for path in tmp_path.iterdir()] == ["logs"]
    assert sorted(path.name for path in (tmp_path / "logs").iterdir()) == ["aiohttp.log", "proxy.log"]


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


def test_a_server_that_does_not_start_is_told_with_its_last_words(tmp_path, monkeypatch):
    """Here because of a setting; what had started before it is stopped."""
    before = family()
    monkeypatch.setenv("MOCKUPSTREAM_BACKLOG", "many")
    with pytest.raises(LabError, match=r"BACKLOG.*aiohttp\.log"):
        LocalTestbed(["aiohttp"], ["direct"], tmp_path, SMALL).__enter__()
    assert family() == before


@pytest.mark.parametrize(
    ("port", "name"),
    [("flask", "flask"), ("proxy_aiohttp_tls", "proxy with TLS for aiohttp")],
)
def test_a_port_that_is_taken_is_named_with_its_server(port, name, taken, tmp_path):
    """And nothing stays behind of what had started before."""
    before = family()
    with pytest.raises(LabError, match=f"port {taken} for {name}:"):
        LocalTestbed(["flask"], ["direct", "proxy"], tmp_path, SMALL, Ports(**{port: taken})).__enter__()
    assert family() == before


def test_without_the_upstreams_the_lab_says_what_to_install(tmp_path, monkeypatch):
    """As in the image of clients, which can measure other servers only."""
    monkeypatch.setitem(sys.modules, "gunicorn", None)
    with pytest.raises(LabError, match=r"gunicorn .*pip install clientlab"):
        LocalTestbed(["aiohttp"], ["direct"], tmp_path, SMALL).__enter__()


@pytest.mark.parametrize("concurrency", [1, 605, 5000])
def test_flask_can_hold_every_request_in_flight(concurrency):
    """It needs a thread for each."""
    workers = workers_for(concurrency)
    assert workers.flask * workers.threads >= concurrency
    assert workers.backlog >= concurrency
    assert workers.aiohttp >= 1
    assert workers_for(concurrency, cpus=[2, 3, 4]).aiohttp == 3


def up() -> tuple[subprocess.Popen, list[psutil.Process], str]:
    """A lab process with both upstreams and the proxy, all that it started, and what it printed."""
    free = [f"--{name.replace('_', '-')}-port=0" for name in Ports.__dataclass_fields__]
    command = [sys.executable, "-m", "clientlab", "up", "-c", "4", *free]
    lab = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    lines = []
    for line in lab.stdout:
        lines.append(line)
        if line.startswith("logs: "):
            break
    return lab, family(lab.pid), "".join(lines)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 0), (signal.SIGKILL, -signal.SIGKILL)])
def test_no_process_outlives_the_lab(number, code):
    """Neither after Ctrl-C nor, on Linux, when it is killed."""
    if number == signal.SIGKILL and sys.platform != "linux":
        pytest.skip("parent-death signals are Linux'")
    with handling(IN_A_TERMINAL):
        lab, started, printed = up()
    with lab:
        *sites, ca, logs = printed.splitlines()
        names = [tuple(line.split()[:2]) for line in sites]
        assert names == [(upstream, route) for upstream in UPSTREAMS for route in local.ROUTES]
        assert Path(ca.removeprefix("CA of proxy-tls: ")).is_file()
        assert len(started) >= 5  # two gunicorns, their workers, Caddy
        lab.send_signal(number)
        rest, errors = lab.communicate(timeout=60)
    assert lab.returncode == code
    gone(started)
    if code == 0:
        assert (rest, errors) == ("stopped\n", "")
        assert not Path(logs.removeprefix("logs: ").partition(";")[0]).exists()
