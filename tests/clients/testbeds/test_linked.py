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
from clientlab.testbeds.server_process import WorkerCounts
from clientlab.workload.delays import Delay
from clientlab.workload.link import Link
from clientlab.workload.workload import Workload
from clients.documents import a_planned_trial

pytestmark = pytest.mark.real

SMALL = WorkerCounts(flask=1, aiohttp=1, threads=4)
RTT = 0.02
LINK = Link(RTT)


@pytest.fixture(scope="module")
def local(tmp_path_factory):
    """An upstream."""
    with LocalTestbed(["aiohttp"], ["direct"], tmp_path_factory.mktemp("logs"), SMALL) as running:
        yield running


@pytest.fixture
def linked(local, tmp_path):
    """The same behind a link."""
    with LinkedTestbed(local, LINK, tmp_path / "logs") as running:
        yield running


def planned(strategy: str, **changes):
    """A trial behind the link."""
    return a_planned_trial(strategy).model_copy(update={"link": LINK, **changes})


@pytest.mark.parametrize(("strategy", "trips", "opened"), [("urllib3", 1, 1), ("requests", 2, 30)])
def test_a_trial_behind_a_link_counts_connections_and_round_trips(local, linked, tmp_path, strategy, trips, opened):
    workload = Workload(requests=30, warmup=0, concurrency=1, delay=Delay.parse("1ms"))
    run_trial = TrialRunner(local, links={LINK: linked})
    trial = run_trial(planned(strategy), workload, tmp_path, lambda _: None)
    assert (trial.status, trial.errors, trial.connections_opened, trial.link) == ("done", {}, opened, LINK)
    assert trial.latency_seconds.p50 >= trips * RTT + 0.001
    assert trial.overhead_seconds.p50 == pytest.approx(trial.latency_seconds.p50 - RTT - 0.001)
    assert trial.link_use.cpu_seconds > 0
    assert trial.upstream_use.requests == 30


def test_a_link_counts_the_bytes_of_heads_and_uploads(local, tmp_path):
    """Of 20 requests with 5 kB each, the link carried their bodies and heads, and the trial's share has them."""
    narrow = Link(0.0, 20e6)
    workload = Workload(requests=20, warmup=0, method="POST", path="/echo", body="x" * 5000, headers={"X": "y" * 300})
    with LinkedTestbed(local, narrow, tmp_path / "narrow") as behind:
        run_trial = TrialRunner(local, links={narrow: behind})
        trial = run_trial(planned("urllib3", link=narrow), workload, tmp_path, lambda _: None)
    assert (trial.status, trial.errors) == ("done", {})
    heads = trial.link_use.up_bytes - 20 * 5000
    assert 20 * 300 < heads < 20 * 1000
    assert trial.busy["bandwidth"] == pytest.approx(8 * trial.link_use.up_bytes / 20e6 / trial.wall_seconds)


def test_a_link_that_dies_ends_its_trial_with_the_cause_and_is_started_again(local, linked, tmp_path):
    """The trial is lost, so that the run measures it once more; the next one finds the link at its port."""
    before = linked.base_url("aiohttp", "direct")
    (process,) = [one for one in psutil.Process().children() if "clientlab.link" in one.cmdline()]

    def kill(finished: int | None) -> None:
        if (finished or 0) >= 3 and process.is_running():
            os.kill(process.pid, signal.SIGKILL)

    run_trial = TrialRunner(local, links={LINK: linked})
    workload = Workload(requests=200, warmup=0, timeout=5.0)
    trial = run_trial(planned("urllib3"), workload, tmp_path, kill)
    assert (trial.status, trial.partial) == ("lost", True)
    assert "SIGKILL" in trial.reason
    with pytest.raises(ServerLost, match="SIGKILL"):
        linked.check()
    linked.serve("aiohttp")
    linked.check()
    assert linked.base_url("aiohttp", "direct") == before


def test_a_server_of_the_users_own_gets_its_own_name_through_the_link(tmp_path):
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
    assert target.behind_link("", "", lambda _: 7)[0] == "https://localhost:7"
    target._peers = ["192.0.2.1"]
    with pytest.raises(FieldError, match="localhost"):
        target.check_link()


def test_the_stack_has_the_link_of_its_environment_or_refuses_one():
    """Clients call the link's container; counters are read from the servers themselves."""
    environment = {"LINK_RTT": "35ms", "LINK_BANDWIDTH": "20mbit", "LINK_FLASK_ADDRESS": "127.0.0.1:7001"}
    testbed = ComposeTestbed(environment)
    ((link, linked),) = testbed.links().items()
    assert link == Link(0.035, 2e7)
    assert linked.base_url("flask", "direct") == "http://127.0.0.1:7001"
    assert linked.address("flask", "proxy-tls") == PeerAddress(9443)
    assert testbed.address("flask", "direct") == PeerAddress(8000)
    check_link(environment, [link])
    with pytest.raises(LabError, match="1 ms"):
        check_link(environment, [Link(0.001)])
    assert ComposeTestbed({"LINK_RTT": "", "LINK_BANDWIDTH": ""}).links() == {}
    check_link({}, [])
    with pytest.raises(LabError, match="20 ms"):
        check_link({}, [LINK])
    with pytest.raises(LabError, match="LINK_RTT=35"):
        link_of_stack({"LINK_RTT": "35"})
