"""Carrying out a run with trials that are not really measured: saving, repeating,
resuming and interrupting.
"""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from clientlab.errors import FieldError, IncompleteRun
from clientlab.results.trial import PlannedTrial, Trial, utc_now
from clientlab.running.execute import TrialLost, execute, resume_run
from clientlab.running.trial_runner import check_disk
from clients.documents import SURROUNDINGS, a_trial
from clients.running.runs import NAME, Recorder, planned


def measured(planned: PlannedTrial, *_: object) -> Trial:
    """A trial of one request."""
    return a_trial(wall=0.1, requests=1).updated(planned=planned, started=utc_now())


def test_the_run_is_saved_after_every_trial(store):
    """A reader finds each trial by the time that the observer sees it."""
    saved = []

    def look(_) -> None:
        read = store.read(NAME)
        saved.append((read.status, len(read.trials)))

    recorder = Recorder(at_start=look, at_end=look)
    run = execute(
        planned("http.client", "urllib3", rounds=2), measured, store, recorder
    )
    assert saved == [("running", count) for count in (0, 1, 1, 2, 2, 3, 3, 4)]
    assert store.read(NAME) == run
    assert run.status == "done"
    assert run.rounds_ended == "planned"
    assert [(trial.planned.round, trial.planned.order) for trial in run.trials] == [
        (1, 0),
        (1, 1),
        (2, 2),
        (2, 3),
    ]
    assert recorder.events[0] == ("run", NAME, NAME)
    assert [event[0] for event in recorder.events[1:]] == ["start", "end"] * 4


def test_records_that_do_not_fit_on_the_disk_are_refused(tmp_path, monkeypatch):
    plan = planned("http.client", requests=10**9).experiment
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=1 << 34))
    with pytest.raises(
        FieldError, match=r"take 30,518 MiB, and .* 16,384 MiB free; write fewer"
    ):
        check_disk(plan, tmp_path)
    check_disk(planned("http.client", requests=10**8).experiment, tmp_path)


def test_a_lost_trial_is_measured_once_more_at_the_end(store):
    """A trial that is lost again leaves the run incomplete."""

    def measure(planned: PlannedTrial, *_: object) -> Trial:
        if planned.order in {0, 2, 5}:
            raise TrialLost("box was not heard of")
        return measured(planned)

    run = execute(
        planned("http.client", "urllib3", rounds=2), measure, store, Recorder()
    )
    assert [trial.status for trial in run.trials] == [
        "lost",
        "done",
        "lost",
        "done",
        "done",
        "lost",
    ]
    assert run.trials[0].reason == "box was not heard of"
    places = [(trial.planned.arm, trial.planned.round) for trial in run.trials]
    assert places[4:] == [places[0], places[2]]
    assert run.status == "incomplete"


def test_a_resumed_run_measures_again_what_failed_or_was_lost(store):
    """However often that happened before."""
    wrong = {1: "failed", 3: "lost", 4: "lost"}  # the second lost one repeats the first

    def measure(planned: PlannedTrial, *_: object) -> Trial:
        outcome = wrong.get(planned.order)
        return (
            Trial(planned=planned, status=outcome, started=utc_now())
            if outcome
            else measured(planned)
        )

    def lose(planned: PlannedTrial, *_: object) -> Trial:
        raise TrialLost(f"box {planned.order} is gone")

    first = execute(
        planned("http.client", "urllib3", rounds=2), measure, store, Recorder()
    )
    assert [trial.status for trial in first.trials] == [
        "done",
        "failed",
        "done",
        "lost",
        "lost",
    ]
    second = execute(resume_run(first, SURROUNDINGS), lose, store, Recorder())
    assert [trial.status for trial in second.trials[5:]] == [
        "lost"
    ] * 4  # each is repeated once
    third = execute(resume_run(second, SURROUNDINGS), measure, store, Recorder())
    assert third.status == "done"
    assert [trial.status for trial in third.trials[9:]] == ["done", "done"]
    assert sorted(
        (t.planned.round, t.planned.arm) for t in third.trials if t.status == "done"
    ) == [
        (1, "http.client"),
        (1, "urllib3"),
        (2, "http.client"),
        (2, "urllib3"),
    ]


@pytest.mark.parametrize(
    ("when", "error", "message", "statuses"),
    [
        (
            "at_start",
            KeyboardInterrupt(),
            "interrupted in trial 2 of 3",
            ["done", "lost"],
        ),
        (
            "at_start",
            OSError("no descriptors"),
            "no descriptors in trial 2 of 3",
            ["done", "lost"],
        ),
        (
            "at_end",
            KeyboardInterrupt(),
            "interrupted between two trials",
            ["done", "done"],
        ),
    ],
)
def test_a_run_that_cannot_go_on_keeps_its_trials_and_can_be_resumed(
    store, when, error, message, statuses
):
    def fail(trial) -> None:
        if getattr(trial, "planned", trial).order == 1:
            raise error

    with pytest.raises(IncompleteRun, match=message):
        execute(
            planned("http.client", rounds=3), measured, store, Recorder(**{when: fail})
        )
    stopped = store.read(NAME)
    assert stopped.status == "incomplete"
    assert [trial.status for trial in stopped.trials] == statuses
    run = execute(resume_run(stopped, SURROUNDINGS), measured, store, Recorder())
    assert run.status == "done"
    assert sum(trial.status == "done" for trial in run.trials) == 3
