"""Testbeds behind a link: whole trials, a link that dies, a server of the user's own, and the stack's container."""

from __future__ import annotations

import os
import signal

import psutil
import pytest

from clientlab.conformance.server import counting_server
from clientlab.errors import FieldError, LabError, ServerLost
from clientlab.measuring.connections import PeerAddress
from clientlab.running.trial_runner import TrialRunner
from clientlab.testbeds.compose import ComposeTestbed, check_link, link_of_stack
from clientlab.testbeds.external import ExternalTarget
from clientlab.testbeds.linked import LinkedTestbed
from clientlab.testbeds.local import LocalTestbed
from clientlab.testbeds.scrape import Endpoint, get
from clientlab.testbeds.server_process import WorkerCounts
from clientlab.workload.delays import Delay
from clientlab.workload.link import Link
from clientlab.workload.workload import Workload
from clients.documents import a_planned_trial

SMALL = WorkerCounts(flask=1, aiohttp=1, threads=4)
RTT = 0.02
LINK = Link(RTT)


@pytest.fixture(scope="module")
def local(tmp_path_factory):
    """An upstream, with TLS before it as well."""
    with LocalTestbed(["aiohttp"], ["direct", "proxy-tls"], tmp_path_factory.mktemp("logs"), SMALL) as running:
        yield running


@pytest.fixture
def linked(local, tmp_path):
    """The same behind a link."""
    with LinkedTestbed(local, LINK, tmp_path / "logs") as running:
        yield running


def planned(strategy: str, **changes):
    """A trial behind the link."""
    return a_planned_trial(strategy).model_copy(update={"link": LINK, **changes})


@pytest.mark.parametrize(
    ("strategy", "route", "trips", "opened"),
    [("urllib3", "direct", 1, 1), ("requests", "direct", 2, 30), ("pycurl-h2@threads", "proxy-tls", 1, 1)],
)
def test_a_trial_behind_a_link_counts_connections_and_round_trips(
    local, linked, tmp_path, strategy, route, trips, opened
):
    """A session pays one round trip for a request, a new connection two; without the link it pays none."""
    workload = Workload(requests=30, warmup=0, concurrency=1, delay=Delay.parse("1ms"))
    run_trial = TrialRunner(local, links={LINK: linked})
    trial = run_trial(planned(strategy, route=route), workload, tmp_path, lambda _: None)
    assert (trial.status, trial.errors, trial.connections_opened, trial.link) == ("done", {}, opened, LINK)
    assert trips * RTT <= trial.latency_seconds.p50 - 0.001 < (trips + 1) * RTT
    assert trial.overhead_seconds.p50 == pytest.approx(trial.latency_seconds.p50 - RTT - 0.001)
    assert trial.busy["latency"] > 0.5
    assert trial.verdict == "latency-bound"
    assert 0 < trial.link_use.cpu_seconds < 30 * RTT
    assert trial.upstream_use.requests == 30


def test_a_link_counts_the_bytes_of_heads_and_uploads(local, tmp_path):
    """Of 20 requests with 5 kB each, the link carried no less than their bodies and heads; the trial's share has them.

    Without a limit of its bandwidth, a link counts nothing.
    """
    narrow = Link(0.0, 20e6)
    workload = Workload(requests=20, warmup=0, method="POST", path="/echo", body="x" * 5000, headers={"X": "y" * 300})
    with LinkedTestbed(local, narrow, tmp_path / "narrow") as behind:
        run_trial = TrialRunner(local, links={narrow: behind})
        trial = run_trial(planned("urllib3", link=narrow), workload, tmp_path, lambda _: None)
    assert (trial.status, trial.errors) == ("done", {})
    heads = trial.link_use.up_bytes - 20 * 5000
    assert 20 * 300 < heads < 20 * 1000
    assert trial.busy["bandwidth"] == pytest.approx(8 * trial.link_use.up_bytes / 20e6 / trial.wall_seconds)


def test_a_link_without_a_limit_counts_no_bytes(linked):
    """Its bytes are unknown, and not 0."""
    use = linked.reading("aiohttp", "direct").link
    assert (use.up_bytes, use.down_bytes) == (None, None)


def test_a_link_that_dies_ends_its_trial_with_the_cause_and_is_started_again(local, linked, tmp_path):
    """The trial is lost, so that the run measures it once more; the next one finds the link at its port."""
    before = linked.base_url("aiohttp", "direct")
    (process,) = [one for one in psutil.Process().children() if "clientlab.link" in one.cmdline()]

    def kill(finished: int) -> None:
        if finished >= 3 and process.is_running():
            os.kill(process.pid, signal.SIGKILL)

    run_trial = TrialRunner(local, links={LINK: linked})
    workload = Workload(requests=200, warmup=0, timeout=5.0)
    trial = run_trial(planned("urllib3"), workload, tmp_path, kill)
    assert (trial.status, trial.partial) == ("lost", True)
    assert trial.reason.startswith("link of 20 ms was ended by SIGKILL")
    with pytest.raises(ServerLost, match="SIGKILL"):
        linked.check()
    linked.serve("aiohttp")
    assert linked.base_url("aiohttp", "direct") == before
    assert get(Endpoint("127.0.0.1", linked.address("aiohttp", "direct").port), "/")[0] == 200


def test_a_server_of_the_users_own_gets_its_own_name_through_the_link(tmp_path):
    """The URL has the link's port, and the header Host the server's."""
    with counting_server() as server:
        target = ExternalTarget(server.url)
        with LinkedTestbed(target, LINK, tmp_path) as linked:
            url = linked.base_url("any", "direct")
            assert url.startswith("http://127.0.0.1:")
            assert url != server.url
            workload = target.named_in(Workload(requests=3, warmup=0, concurrency=1))
            run_trial = TrialRunner(target, links={LINK: linked})
            trial = run_trial(planned("aiohttp@workers"), workload, tmp_path, lambda _: None)
        assert (trial.status, trial.connections_opened, trial.upstream_use) == ("done", 1, None)
        assert {seen.headers["host"] for seen in server.seen} == {f"127.0.0.1:{server.port}"}
    assert target.named_in(Workload(headers={"host": "shop"})).headers == {"host": "shop"}


def test_with_tls_only_a_name_of_this_machine_leads_to_the_link():
    """Clients verify the certificate of the name that they connect to."""
    with counting_server() as server:
        target = ExternalTarget(server.url.replace("127.0.0.1", "localhost"))
        target.secure = True
        target.check_link()
        url, address = target.behind_link("", "", lambda _: 7)
        assert url == "https://localhost:7"
        assert address.port == 7
        assert "127.0.0.1" not in address.refusing
        target._peers = ["192.0.2.1"]
        with pytest.raises(FieldError, match=r"a link listens at 127.0.0.1, and clients connect to localhost because"):
            target.check_link()


def test_the_stack_has_the_link_of_its_environment():
    """Clients call the link's container; counters are read from the servers themselves."""
    environment = {"LINK_RTT": "35ms", "LINK_BANDWIDTH": "20mbit", "LINK_FLASK_ADDRESS": "127.0.0.1:7001"}
    testbed = ComposeTestbed(environment)
    ((link, linked),) = testbed.links().items()
    assert link == Link(0.035, 2e7, 87_500)
    assert linked.base_url("flask", "direct") == "http://127.0.0.1:7001"
    assert linked.address("flask", "proxy-tls") == PeerAddress(9443)
    assert testbed.address("flask", "direct") == PeerAddress(8000)
    assert testbed.programs()["link"] == "a container that emulates 35 ms, 20 Mbit/s, buffer of 87.5 KB"
    check_link(environment, [link])
    with pytest.raises(LabError, match=r"a link of 1 ms, and the stack emulates 35 ms, 20 .*87.5 KB; start"):
        check_link(environment, [Link(0.001)])


def test_a_stack_without_a_link_refuses_one():
    """And an environment that describes none is refused by its variable."""
    assert ComposeTestbed({"LINK_RTT": "", "LINK_BANDWIDTH": ""}).links() == {}
    assert link_of_stack({"LINK_BANDWIDTH": "1gbit"}) == Link(0.0, 1e9, 65_536)
    assert link_of_stack({"LINK_BANDWIDTH": "1gbit", "LINK_BUFFER": "1MB"}) == Link(0.0, 1e9, 1_000_000)
    check_link({}, [])
    with pytest.raises(LabError, match=r"a link of 20 ms, and the stack has no link"):
        check_link({}, [LINK])
    with pytest.raises(LabError, match=r"LINK_RTT=35: 35 without a unit is a time in seconds; write 35ms, or 0 to 10"):
        link_of_stack({"LINK_RTT": "35"})
    with pytest.raises(LabError, match=r"LINK_BUFFER=0: '0' is not a buffer; write 64KiB, 128KB or 1MB"):
        link_of_stack({"LINK_BANDWIDTH": "1gbit", "LINK_BUFFER": "0"})
