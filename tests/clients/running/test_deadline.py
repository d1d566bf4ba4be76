"""The deadline of a trial, and the watch over its servers."""

from __future__ import annotations

import pytest

from clientlab import strategies
from clientlab.errors import ServerLost
from clientlab.experiments.file import bundled, read_plan
from clientlab.observing.process_handle import TrialFailed
from clientlab.running.schedule import estimate_seconds
from clientlab.running.trial_runner import (
    FAILURES_IN_A_ROW,
    ServerWatch,
    compute_deadline,
)
from clientlab.workload.values import Delay, Link
from clientlab.workload.workload import Workload, make_workload
from clients.documents import a_planned_trial


@pytest.mark.parametrize(
    ("workload", "in_flight", "link", "seconds"),
    [
        (make_workload(requests=300), 30, None, 300 + 60 + 310 * 3 / 30),
        (
            make_workload(requests=300),
            30,
            Link(0.1),
            300 + 60 + 310 * (3 / 30 + 4 * 0.1),
        ),
        (
            make_workload(requests=1000, delay=Delay.parse("140ms")),
            100,
            None,
            300 + 60 + 1010 * (0.14 + 0.03),
        ),
        (make_workload(duration=600.0), 10, None, 300 + 60 + 600 + 30 * 0.3),
        (make_workload(requests=300, deadline=7.5), 1, None, 7.5),
    ],
)
def test_the_deadline_follows_from_the_plan(workload, in_flight, link, seconds):
    assert compute_deadline(workload, in_flight, link) == pytest.approx(seconds)


def test_no_bundled_experiment_is_near_its_deadlines():
    for path in bundled().values():
        plan = read_plan(path)
        for arm in plan.arms:
            alone = plan.updated(arms=[arm], rounds=1, budget=None)
            workload = plan.workloads[arm.workload]
            in_flight = strategies.find(arm.strategy).in_flight(
                workload.load.concurrency, workload.load.requests
            )
            assert 5 * estimate_seconds(alone) < compute_deadline(
                workload, in_flight
            ), (path.stem, arm.name)


class FakeServers:
    """Servers whose health check fails while `broken`."""

    broken = True
    lost = False
    asked = 0

    def check(self) -> None:
        if self.lost:
            raise ServerLost("aiohttp was ended by SIGKILL")

    def trouble(self, upstream: str, route: str, workload: Workload) -> str | None:  # noqa: ARG002
        self.asked += 1
        return "no answer" if self.broken else None


def watch_servers(**servers) -> tuple[FakeServers, ServerWatch]:
    watched = FakeServers()
    vars(watched).update(servers)
    return watched, ServerWatch(
        watched, a_planned_trial(), make_workload(), lambda _: None
    )


def test_a_failed_health_check_ends_a_trial_whose_requests_keep_failing():
    """The check is made after five failures in a row.

    The trial goes on if a request succeeds before the next look.
    """
    servers, watch = watch_servers()
    watch.look(0, FAILURES_IN_A_ROW - 1)
    assert servers.asked == 0
    for in_a_row in (5, 0, 3, 9):
        watch.look(0, in_a_row)
    assert servers.asked == 1  # the last one was a moment ago
    servers, watch = watch_servers()
    watch.look(0, 5)
    with pytest.raises(TrialFailed, match="no answer"):
        watch.look(0, 1200)


def test_an_outage_of_a_users_server_is_a_result_unless_it_stays_away(monkeypatch):
    servers = FakeServers()
    seconds = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: seconds[0])
    planned = a_planned_trial().updated(upstream="mine")
    watch = ServerWatch(servers, planned, make_workload(), lambda _: None)
    for now, broken in (
        (3, True),
        (6, True),
        (12, True),
        (15, False),
        (18, True),
        (30, True),
    ):
        seconds[0], servers.broken = now, broken
        watch.look(0, 100)
    seconds[0] = 34
    with pytest.raises(TrialFailed, match="no answer"):
        watch.look(0, 100)


def test_a_trial_goes_on_if_the_server_is_healthy_and_is_lost_if_it_is_gone():
    servers, watch = watch_servers(broken=False)
    for failed in range(5, 50):
        watch.look(0, failed)
    assert servers.asked == 1
    with pytest.raises(ServerLost):
        watch_servers(lost=True)[1].look(0, 5)
