"""Trials in slices: the processes of a round live side by side and take turns to
measure.
"""

from __future__ import annotations

import itertools
import os
import signal
import time

import pytest

from clientlab.conformance.server import counting_server
from clientlab.errors import IncompleteRun
from clientlab.results.document import Run
from clientlab.running import trial_runner
from clientlab.running.execute import execute, resume_run
from clientlab.running.schedule import count_slices
from clientlab.running.trial_runner import TrialRunner
from clients.analysis.test_received import OneUpstream
from clients.documents import SURROUNDINGS, a_trial
from clients.fake_testbed import FakeTestbed
from clients.measured import trial_processes
from clients.running.runs import NAME, Recorder, planned
from running import gunicorn
from signal_handlers import IN_A_TERMINAL, handling


def in_slices(
    *strategies: str, slices: int | None = 4, rounds: int = 1, **workload
) -> Run:
    """A run whose trials take a fifth of a second, in slices."""
    more = {"upstreams": ["aiohttp"], "slices": slices}
    return planned(
        *strategies, rounds=rounds, more=more, **{"duration": 0.2} | workload
    )


def carry_out(run, server, store, **runner):
    testbed = server if isinstance(server, FakeTestbed) else FakeTestbed(server)
    measures = TrialRunner(testbed, **runner)
    return execute(run, measures, store, Recorder(), by_turns=measures.by_turns)


@pytest.mark.real
def test_the_trials_of_a_group_measure_by_turns(store):
    """Each trial's slices lie between those of the others, and its figures are only
    those of its slices.
    """
    planned_run = in_slices("http.client", "urllib3", "requests-session")
    with counting_server(hold=0.002) as server:
        run = carry_out(planned_run, server, store)
    turns = [
        connection
        for connection, _ in itertools.groupby(seen.connection for seen in server.seen)
    ]
    assert set(turns) == {1, 2, 3}
    assert len(turns) >= 2 * len(run.trials)
    for trial in run.trials:
        assert trial.status == "done"
        assert trial.planned.slices == 4
        assert trial.figures.errors == {}
        assert trial.figures.requests == trial.servers.upstream.requests
        assert trial.wall_seconds >= 0.2
        assert trial.measured.cpu_seconds > 0
        assert (
            trial.measured.connections_opened
            == trial.measured.connections_reopened
            == 0
        )
    assert sum(trial.figures.requests for trial in run.trials) < len(server.seen)


@pytest.mark.parametrize(
    ("strategy", "workload", "slices"),
    [
        ("http.client", {}, 4),
        ("http.client", {"duration": None, "requests": 12}, 1),
        ("aiohttp@workers", {"rate": 100.0}, 1),
        ("requests-session@threads", {"shards": 2, "concurrency": 4}, 1),
    ],
)
def test_trials_that_cannot_take_turns_are_measured_in_one_piece(
    strategy, workload, slices
):
    """Slices need a duration, open connections, a closed load, and one process."""
    run = in_slices(strategy, **workload)
    assert count_slices(run, run.experiment.arms[0]) == slices


@pytest.mark.real
def test_connections_that_a_server_closes_between_slices_are_opened_before_the_next_one(
    store, monkeypatch
):
    monkeypatch.setattr(trial_runner, "_OWN_REST", 1.1)
    planned_run = in_slices("urllib3", "requests-session", slices=2)
    ends = itertools.count(1)
    with gunicorn(
        "aiohttp", keep_alive="1"
    ) as server:  # both have measured once: as long as other trials would take
        rest = lambda: next(ends) == 2 and time.sleep(1.3)  # noqa: E731
        run = carry_out(planned_run, OneUpstream(server), store, on_end=rest)
    for trial in run.trials:
        assert trial.status == "done"
        assert trial.figures.errors == {}
        assert trial.measured.connections_reopened > 0


@pytest.mark.real
def test_a_process_that_dies_between_its_slices_is_lost_and_measured_once_more(store):
    killed = []

    def kill_another() -> None:
        waiting = [one for one in trial_processes() if one.pid not in killed]
        if not killed and len(waiting) == 2:
            killed.append(waiting[0].pid)
            os.kill(waiting[0].pid, signal.SIGKILL)

    with counting_server() as server:
        run = carry_out(
            in_slices("http.client", "urllib3"), server, store, on_end=kill_another
        )
    lost, *done = sorted(run.trials, key=lambda trial: trial.status == "done")
    assert lost.status == "lost"
    assert run.status == "done"
    assert len(done) == 2
    assert "SIGKILL" in lost.reason
    assert "between two slices" in lost.reason
    assert {trial.planned.arm for trial in done} == {"http.client", "urllib3"}


@pytest.mark.real
def test_an_interrupt_within_a_slice_drops_the_round_and_keeps_those_before(store):
    """The trials of the round are lost, with the figures so far, and a resumed run
    measures them again.
    """
    starts = itertools.count(1)

    def interrupt() -> None:
        if next(starts) == 2 * 4 + 3:  # in the second round
            signal.raise_signal(signal.SIGINT)

    planned_run = in_slices("http.client", "urllib3", rounds=2)
    # A background job or a CI runner may start the tests with Ctrl-C ignored.
    with handling(IN_A_TERMINAL), counting_server() as server:
        with pytest.raises(IncompleteRun, match="trial 3 of 4"):
            carry_out(planned_run, server, store, on_start=interrupt)
        assert trial_processes() == []
        run = store.read(NAME)
        assert [(trial.planned.round, trial.status) for trial in run.trials] == [
            (1, "done"),
            (1, "done"),
            (2, "lost"),
            (2, "lost"),
        ]
        for trial in run.trials[2:]:
            assert trial.partial
        again = carry_out(resume_run(run, SURROUNDINGS), server, store)
    assert [(trial.planned.round, trial.status) for trial in again.trials[4:]] == [
        (2, "done"),
        (2, "done"),
    ]
    assert again.status == "done"


def test_slices_are_long_beside_the_requests_of_the_rounds_before():
    """Requests of 20 ms want slices of 80 ms: two in 0.2 s."""
    run = in_slices("urllib3", slices=None)
    assert count_slices(run, run.experiment.arms[0]) == 8
    before = a_trial("urllib3", arm=run.experiment.arms[0].name, long_seconds=0.02)
    assert count_slices(run.with_trial(before), run.experiment.arms[0]) == 2
