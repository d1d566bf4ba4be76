"""The course of a run whose trials nobody measures: saving, interruptions, and what is measured once more."""

from __future__ import annotations

from clientlab.results.trial import PlannedTrial, Trial, utc_now
from clientlab.running.execute import TrialLost, execute, resumed
from clients.documents import SURROUNDINGS
from clients.running.runs import NAME, Recorder, planned


def done(planned: PlannedTrial) -> Trial:
    """The planned trial, measured."""
    return Trial.of(planned, status="done", started=utc_now(), requests=1, wall_seconds=0.1)


def measured(planned: PlannedTrial, *_: object) -> Trial:
    """As a runner of trials measures it."""
    return done(planned)


def test_the_run_is_saved_after_every_trial(store):
    """Readers find each trial by the time that it is told of."""
    saved = []

    def look(_) -> None:
        read = store.read(NAME)
        saved.append((read.status, len(read.trials)))

    recorder = Recorder(at_start=look, at_end=look)
    run = execute(planned("http.client", "urllib3", rounds=2), measured, store, recorder)
    assert saved == [("running", count) for count in (0, 1, 1, 2, 2, 3, 3, 4)]
    assert store.read(NAME) == run
    assert (run.status, [trial.order for trial in run.trials]) == ("done", [0, 1, 2, 3])
    assert [trial.round for trial in run.trials] == [1, 1, 2, 2]
    assert recorder.events[0] == ("run", NAME, NAME)
    assert [event[0] for event in recorder.events[1:]] == ["start", "end"] * 4


def test_a_lost_trial_is_given_once_more_at_the_end(store):
    """Once only: a trial that is lost again leaves the run incomplete."""

    def measure(planned: PlannedTrial, *_: object) -> Trial:
        if planned.order in {0, 2, 5}:
            raise TrialLost("box was not heard of")
        return done(planned)

    run = execute(planned("http.client", "urllib3", rounds=2), measure, store, Recorder())
    assert [trial.status for trial in run.trials] == ["lost", "done", "lost", "done", "done", "lost"]
    assert run.trials[0].reason == "box was not heard of"
    assert [(run.trials[k].arm, run.trials[k].round) for k in (4, 5)] == [
        (run.trials[k].arm, run.trials[k].round) for k in (0, 2)
    ]
    assert run.status == "incomplete"


def test_a_run_that_is_resumed_measures_again_what_failed_or_was_lost(store):
    """However often that had happened before: each resumption is a new beginning for what is not done."""
    wrong: dict[int, str] = {1: "failed", 3: "lost", 4: "lost"}  # the second repeats the first

    def measure(planned: PlannedTrial, *_: object) -> Trial:
        outcome = wrong.get(planned.order)
        return Trial.of(planned, status=outcome, started=utc_now()) if outcome else done(planned)

    def lost(planned: PlannedTrial, *_: object) -> Trial:
        raise TrialLost(f"box {planned.order} is gone")

    first = execute(planned("http.client", "urllib3", rounds=2), measure, store, Recorder())
    assert [trial.status for trial in first.trials] == ["done", "failed", "done", "lost", "lost"]
    second = execute(resumed(first, SURROUNDINGS), lost, store, Recorder())
    assert [trial.status for trial in second.trials[5:]] == ["lost"] * 4  # each is repeated once
    third = execute(resumed(second, SURROUNDINGS), measure, store, Recorder())
    assert (third.status, [trial.status for trial in third.trials[9:]]) == ("done", ["done", "done"])
    assert sorted((t.round, t.arm) for t in third.trials if t.status == "done") == [
        (1, "http.client"), (1, "urllib3"), (2, "http.client"), (2, "urllib3"),
    ]  # fmt: skip
