"""The deadline of a trial, and the watch over its servers."""

from __future__ import annotations

import math

import pytest

from clientlab import strategies
from clientlab.errors import ServerLost
from clientlab.experiments.file import bundled, read_plan
from clientlab.measuring.trial_handle import TrialFailed
from clientlab.running import trial_watch
from clientlab.running.due import seconds_of
from clientlab.running.trial_watch import FAILURES_IN_A_ROW, TrialWatch, deadline_of
from clientlab.workload.delays import Delay
from clientlab.workload.workload import Workload
from clients.documents import a_planned_trial


@pytest.mark.parametrize(
    ("workload", "in_flight", "seconds"),
    [
        (Workload(requests=300), 30, 300 + 60 + 310 * 3 / 30),
        (Workload(requests=1000, delay=Delay.parse("140ms")), 100, 300 + 60 + 1010 * (0.14 + 0.03)),
        (Workload(duration=600.0), 10, 300 + 60 + 600 + 10 * 0.3),
        (Workload(requests=300, deadline=7.5), 1, 7.5),
    ],
)
def test_the_deadline_follows_from_the_plan(workload, in_flight, seconds):
    """300 requests that all time out would take 2.5 hours one after the other; the deadline is 21 minutes."""
    assert deadline_of(workload, in_flight) == pytest.approx(seconds)


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

    def __init__(self) -> None:
        self.broken = True
        self.lost = False
        self.asked = 0

    def check(self) -> None:
        if self.lost:
            raise ServerLost("aiohttp was ended by SIGKILL")

    def trouble(self, upstream: str, route: str, workload: Workload) -> str | None:  # noqa: ARG002
        self.asked += 1
        return "no answer" if self.broken else None


@pytest.fixture
def servers():
    return FakeServers()


@pytest.fixture
def watch(servers):
    """A watch over these servers."""
    return TrialWatch(servers, a_planned_trial(), Workload(), lambda _: None)


def test_a_failed_health_check_ends_a_trial_whose_requests_go_on_failing(servers, watch):
    """Not before five failures in a row, and not before another look."""
    watch.failures(FAILURES_IN_A_ROW - 1)
    assert servers.asked == 0
    watch.failures(5)
    with pytest.raises(TrialFailed, match="no answer"):
        watch.failures(1200)


def test_a_success_behind_the_health_check_lets_the_trial_go_on(servers, watch):
    """The next failures call for another one."""
    watch.failures(5)
    watch.failures(0)
    watch.failures(3)
    watch.failures(9)
    assert servers.asked == 1  # the last one was a moment ago


def test_health_checks_are_seldom_and_a_sound_server_is_left_alone(servers, watch, monkeypatch):
    """A server that passes its health checks is not restarted, however long requests fail."""
    servers.broken = False
    for failed in range(5, 50):
        watch.failures(failed)
    assert servers.asked == 1
    monkeypatch.setattr(trial_watch, "LOOK_SECONDS", -math.inf)
    watch.failures(50)
    assert servers.asked == 2


def test_a_server_that_is_gone_is_lost_and_not_failed(servers, watch):
    """The testbed starts it again, and the trial is measured once more."""
    servers.lost = True
    with pytest.raises(ServerLost):
        watch.failures(5)
