"""The deadline of a trial, and the watch over its servers."""

from __future__ import annotations

import pytest

from clientlab import strategies
from clientlab.errors import ServerLost
from clientlab.experiments.file import bundled, read_plan
from clientlab.measuring.trial_handle import TrialFailed
from clientlab.running.due import seconds_of
from clientlab.running.trial_watch import FAILURES_IN_A_ROW, TrialWatch, deadline_of
from clientlab.workload.delays import Delay
from clientlab.workload.link import Link
from clientlab.workload.workload import Workload
from clients.documents import a_planned_trial


@pytest.mark.parametrize(
    ("workload", "in_flight", "link", "seconds"),
    [
        (Workload(requests=300), 30, None, 300 + 60 + 310 * 3 / 30),
        (Workload(requests=300), 30, Link(0.1), 300 + 60 + 310 * (3 / 30 + 4 * 0.1)),
        (Workload(requests=1000, delay=Delay.parse("140ms")), 100, None, 300 + 60 + 1010 * (0.14 + 0.03)),
        (Workload(duration=600.0), 10, None, 300 + 60 + 600 + 10 * 0.3),
        (Workload(requests=300, deadline=7.5), 1, None, 7.5),
    ],
)
def test_the_deadline_follows_from_the_plan(workload, in_flight, link, seconds):
    """300 requests that all time out would take 2.5 hours one after the other; the deadline is 21 minutes.

    Behind a link, each request may take four round trips: of TCP, of TLS 1.2, and its own.
    """
    assert deadline_of(workload, in_flight, link) == pytest.approx(seconds)


def test_no_bundled_experiment_is_near_its_deadlines():
    """Even if its trials take five times as long as the lab expects."""
    for path in bundled().values():
        plan = read_plan(path)
        for arm in plan.arms:
            alone = plan.model_copy(update={"arms": [arm], "rounds": 1, "budget": None})
            workload = plan.workloads[arm.workload]
            in_flight = strategies.find(arm.strategy).in_flight(workload.concurrency, workload.requests)
            assert 5 * seconds_of(alone) < deadline_of(workload, in_flight), (path.stem, arm.name)


class FakeServers:
    """Servers whose health check fails while `broken`."""

    broken, lost, asked = True, False, 0

    def check(self) -> None:
        if self.lost:
            raise ServerLost("aiohttp was ended by SIGKILL")

    def trouble(self, upstream: str, route: str, workload: Workload) -> str | None:  # noqa: ARG002
        self.asked += 1
        return "no answer" if self.broken else None


def watching(**servers) -> tuple[FakeServers, TrialWatch]:
    """Servers, and a watch over them."""
    watched = FakeServers()
    vars(watched).update(servers)
    return watched, TrialWatch(watched, a_planned_trial(), Workload(), lambda _: None)


def test_a_failed_health_check_ends_a_trial_whose_requests_go_on_failing():
    """Not before five failures in a row, and not before another look. A success lets the trial go on."""
    servers, watch = watching()
    watch.failures(FAILURES_IN_A_ROW - 1)
    assert servers.asked == 0
    for in_a_row in (5, 0, 3, 9):
        watch.failures(in_a_row)
    assert servers.asked == 1  # the last one was a moment ago
    servers, watch = watching()
    watch.failures(5)
    with pytest.raises(TrialFailed, match="no answer"):
        watch.failures(1200)


def test_a_sound_server_is_left_alone_and_one_that_is_gone_is_lost():
    """However long requests fail. A lost one is started again, and its trial is measured once more."""
    servers, watch = watching(broken=False)
    for failed in range(5, 50):
        watch.failures(failed)
    assert servers.asked == 1
    with pytest.raises(ServerLost):
        watching(lost=True)[1].failures(5)
