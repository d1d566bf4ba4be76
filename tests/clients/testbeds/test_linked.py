"""Testbeds behind a link: whole trials, a link that dies, and the user's own server."""

from __future__ import annotations

import psutil
import pytest

from clientlab.conformance.server import counting_server
from clientlab.errors import FieldError, ServerLost
from clientlab.running.trial_runner import TrialRunner
from clientlab.testbeds.external import ExternalTarget
from clientlab.testbeds.linked import LinkedTestbed, LinkProcess
from clientlab.testbeds.local import LocalTestbed
from clientlab.testbeds.servers import WorkerCounts
from clientlab.workload.values import Delay, Link
from clientlab.workload.workload import make_workload
from clients.documents import a_planned_trial

pytestmark = pytest.mark.real

SMALL = WorkerCounts(flask=1, aiohttp=1, threads=4)
RTT = 0.02
LINK = Link(RTT)


@pytest.fixture(scope="module")
def local(tmp_path_factory):
    """The local testbed with one upstream."""
    with LocalTestbed(
        ["aiohttp"], ["direct"], tmp_path_factory.mktemp("logs"), SMALL
    ) as running:
        yield running


@pytest.fixture
def linked(local, tmp_path):
    """The same behind a link."""
    with LinkProcess(LINK, local.targets(), tmp_path / "logs") as process:
        yield LinkedTestbed(local, process)


def planned(strategy: str, **changes):
    """A planned trial behind the link."""
    return a_planned_trial(strategy).updated(**{"link": LINK, **changes})


@pytest.mark.parametrize(
    ("strategy", "trips", "opened"), [("urllib3", 1, 1), ("requests", 2, 30)]
)
def test_a_trial_behind_a_link_counts_connections_and_round_trips(
    local, linked, tmp_path, strategy, trips, opened
):
    workload = make_workload(
        requests=30, warmup=0, concurrency=1, delay=Delay.parse("1ms")
    )
    run_trial = TrialRunner(local, links={LINK: linked})
    trial = run_trial(planned(strategy), workload, tmp_path, lambda _: None)
    assert trial.status == "done"
    assert trial.figures.errors == {}
    assert trial.planned.link == LINK
    assert trial.measured.connections_opened == opened
    assert trial.figures.latency_seconds.p50 >= trips * RTT + 0.001
    assert trial.figures.overhead_seconds.p50 == pytest.approx(
        trial.figures.latency_seconds.p50 - RTT - 0.001
    )
    assert trial.servers.link.cpu_seconds > 0
    assert trial.servers.upstream.requests == 30


def test_a_link_counts_the_bytes_of_heads_and_uploads(local, tmp_path):
    narrow = Link(0.0, 20e6)
    workload = make_workload(
        requests=20,
        warmup=0,
        method="POST",
        path="/echo",
        body="x" * 5000,
        headers={"X": "y" * 300},
    )
    with LinkProcess(narrow, local.targets(), tmp_path / "narrow") as process:
        run_trial = TrialRunner(local, links={narrow: LinkedTestbed(local, process)})
        trial = run_trial(
            planned("urllib3", link=narrow), workload, tmp_path, lambda _: None
        )
    assert trial.status == "done"
    assert trial.figures.errors == {}
    heads = trial.servers.link.up_bytes - 20 * 5000
    assert 20 * 300 < heads < 20 * 1000
    assert trial.verdict.shares.bandwidth == pytest.approx(
        8 * trial.servers.link.up_bytes / 20e6 / trial.wall_seconds
    )


def test_a_link_that_dies_loses_its_trial_and_is_restarted_at_its_port(
    local, linked, tmp_path
):
    before = linked.address("aiohttp", "direct")
    process = psutil.Process(linked.process.pid)

    def kill(finished: int | None) -> None:
        if (finished or 0) >= 3 and process.is_running():
            process.kill()

    run_trial = TrialRunner(local, links={LINK: linked})
    workload = make_workload(requests=200, warmup=0, timeout=5.0)
    trial = run_trial(planned("urllib3"), workload, tmp_path, kill)
    assert trial.status == "lost"
    assert trial.partial
    assert "SIGKILL" in trial.reason
    with pytest.raises(ServerLost, match="SIGKILL"):
        linked.check()
    linked.serve("aiohttp")
    linked.check()
    assert linked.address("aiohttp", "direct") == before


def test_with_tls_only_a_name_of_this_machine_can_be_linked():
    """Clients verify the certificate of the name that they connect to.

    A workload may have a name of its own.
    """
    with counting_server() as server:
        target = ExternalTarget(server.url.replace("127.0.0.1", "localhost"))
    assert target.named_in(make_workload(headers={"host": "shop"})).request.headers == {
        "host": "shop"
    }
    target.secure = True
    target.check_link()
    assert target.behind_link(7).url == "https://localhost:7"
    target._peers = ["192.0.2.1"]
    with pytest.raises(FieldError, match="localhost"):
        target.check_link()
