"""Histories: which runs are in one line, what is judged, and which changes of arms and figures are found."""

from __future__ import annotations

import pytest

from clientlab.judging.history import ALL_ARMS, history_of
from clientlab.judging.history_lines import PastRun, figures_with, lines_of
from clientlab.results.figures import BY_KEY
from clients.documents import SURROUNDINGS, a_trial
from clients.histories import ARMS, a_history, on_day


def past(runs, more=()):
    """The runs as histories need them."""
    return [PastRun.of(run, figures_with(more)) for run in runs]


def one_history(runs):
    """The history of runs that are all in one line."""
    (line,) = lines_of(past(runs))
    return history_of(line, figures_with(()))


def changes(found):
    """(Arm, key of a figure) → the runs with a change."""
    return {(track.arm, track.figure.key): [step.at for step in track.steps] for track in found.tracks if track.steps}


def test_an_arm_that_became_slower_is_named_with_its_figure_and_its_run():
    """The others did not change, and neither did what all arms have in common."""
    found = one_history(a_history(slower=1.15))
    assert changes(found) == {("urllib3", "throughput"): [10]}
    ((_, step),) = found.changes_at(10)
    assert step.worse
    assert step.ratio.value == pytest.approx(1 / 1.15, rel=0.03)
    assert step.ratio.low < 1 / 1.15 < step.ratio.high


def test_equal_runs_have_no_change():
    """However much whole runs differ from day to day."""
    assert changes(one_history(a_history(day=0.08))) == {}


def test_days_on_which_every_arm_is_slow_are_no_change_of_an_arm():
    """They are a change of what all arms have in common."""
    runs = a_history(day=0.01)
    slow = [_slowed(run, 1.3) if at >= 12 else run for at, run in enumerate(runs)]
    assert changes(one_history(slow)) == {(ALL_ARMS, "throughput"): [12]}


def _slowed(run, factor):
    trials = [
        trial.model_copy(
            update={
                "wall_seconds": trial.wall_seconds * factor,
                "requests_per_second": trial.requests_per_second / factor,
            }
        )
        for trial in run.trials
    ]
    return run.model_copy(update={"trials": trials})


def test_few_arms_are_judged_by_their_levels():
    """Of two, nobody knows which one changed by their ratio."""
    found = one_history(a_history(slower=1.25, arms=ARMS[:2], day=0.01))
    assert changes(found) == {("urllib3", "throughput"): [10]}
    assert not any(track.relative for track in found.tracks)
    assert all(track.arm != ALL_ARMS for track in found.tracks)


def test_errors_that_begin_are_a_change_in_percentage_points():
    """A share of 0 permits no ratio."""
    runs = a_history()
    failing = [_failing(run) if at >= 10 else run for at, run in enumerate(runs)]
    found = one_history(failing)
    ((track, step),) = [one for one in found.changes_at(10) if one[0].figure.key == "errors"]
    assert (track.arm, step.ratio, step.worse) == ("aiohttp", None, True)
    assert step.difference.value == pytest.approx(0.05)


def _failing(run):
    trials = [
        trial.model_copy(update={"errors": {"reset": 50}}) if trial.arm == "aiohttp" else trial for trial in run.trials
    ]
    return run.model_copy(update={"trials": trials})


def test_too_few_runs_state_how_many_more_would_do():
    """And no change, however large."""
    found = one_history(a_history(8, slower=3.0, since=4))
    assert changes(found) == {}
    assert found.missing > 0
    assert one_history(a_history(8 + found.missing, slower=3.0, since=(8 + found.missing) // 2)).missing == 0


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"cpu_model": "Another CPU"}, "cpu model: A CPU -> Another CPU"),
        ({"python": "CPython 3.14.0"}, "python: CPython 3.11.7 -> CPython 3.14.0"),
        ({"programs": {"aiohttp": "workers=4"}}, "aiohttp: none -> workers=4"),
    ],
)
def test_a_run_in_other_surroundings_begins_a_line_that_says_why(changed, reason):
    """The runs after it go on with the line that fits them, also where they take turns."""
    runs = a_history(9)
    mixed = [on_day(run, at, **changed) if at in (4, 6, 7) else run for at, run in enumerate(runs)]
    first, second = lines_of(past(mixed))
    assert [one.run.run for one in first.runs] == [runs[at].run for at in (0, 1, 2, 3, 5, 8)]
    assert [one.run.run for one in second.runs] == [runs[at].run for at in (4, 6, 7)]
    assert (first.reasons, second.reasons, second.before) == ([], [reason], runs[3].run)


def test_another_version_of_a_package_goes_on_with_the_line_and_stands_beside_the_change():
    """As do another host, and what one of the runs does not know."""
    runs = [
        on_day(run, at, libraries={"urllib3": "2.5.0" if at < 10 else "2.6.0"}, **({"smt": True} if at > 3 else {}))
        for at, run in enumerate(a_history(slower=1.2))
    ]
    (line,) = lines_of(past(runs))
    assert [(one.part, one.before, one.after) for one in line.upgrades(10)] == [("urllib3", "2.5.0", "2.6.0")]
    assert (line.upgrades(0), line.upgrades(9)) == ([], [])


def test_another_workload_begins_a_line():
    """Its figures are those of other work."""
    first, second = a_history(2)
    (workload,) = second.experiment.workloads.values()
    plan = second.experiment.model_copy(update={"workloads": {"workload": type(workload)(requests=7)}})
    _, line = lines_of(past([first, second.model_copy(update={"experiment": plan})]))
    assert line.reasons == ["workload 'workload' has requests 1000 and 7"]


def test_an_arm_that_came_later_has_its_own_history_in_the_same_line():
    """Runs without it are passed over."""
    runs = a_history(24, slower=1.4, since=18)
    without = [_without(run, "aiohttp") if at < 9 else run for at, run in enumerate(runs)]
    found = one_history(without)
    assert changes(found) == {("urllib3", "throughput"): [18]}
    assert {track.runs for track in found.tracks if track.arm == "aiohttp"} == {15}


def _without(run, arm):
    plan = run.experiment.model_copy(update={"arms": [one for one in run.experiment.arms if one.name != arm]})
    return run.model_copy(update={"experiment": plan, "trials": [trial for trial in run.trials if trial.arm != arm]})


def test_a_run_whose_percentile_is_only_a_lower_bound_has_no_level_of_it():
    """Nobody knows how much larger it is."""
    (run,) = a_history(1)
    bound = run.trials[0].latency_seconds.model_copy(update={"at_least": ["p99"]})
    trial = a_trial("urllib3", 1, latency_seconds=bound, errors={"reset": 20})
    found = PastRun.of(run.model_copy(update={"trials": [trial, *run.trials[1:]]}), (BY_KEY["p99"], BY_KEY["p50"]))
    assert ("urllib3", "p99") not in found.values
    assert ("urllib3", "p50") in found.values
    assert ("aiohttp", "p99") in found.values


def test_a_history_keeps_little_of_a_run():
    """One trial of each arm, since a hundred runs have to fit."""
    (run,) = a_history(1)
    reduced = PastRun.of(run, figures_with(()))
    assert [trial.arm for trial in reduced.run.trials] == list(ARMS)
    assert len(reduced.values["urllib3", "cpu"]) == 5
    assert SURROUNDINGS.cpu_model == reduced.run.surroundings.cpu_model
