"""`--find-max`: the rates that a search tries, its result, how arms compare by it, and
interrupted searches.
"""

from __future__ import annotations

import csv
import io
import itertools

import pytest

from clientlab.errors import IncompleteRun
from clientlab.judging.comparison import compare
from clientlab.judging.find_max import bracket_of, next_rate, typical_rate, why_not_held
from clientlab.reports import as_csv, as_html, as_markdown
from clientlab.reports.answers import group_answers
from clientlab.reports.rows import groups_of
from clientlab.reports.sweeps import sweeps_of
from clientlab.results.plan import Conditions
from clientlab.results.trial import Trial
from clientlab.running.execute import TrialInterrupted, execute, resume_run
from clients.documents import SURROUNDINGS, a_searched_trial, quantiles, with_changes
from clients.running.runs import NAME, Recorder, planned

CONDITIONS = Conditions.parse("p99<250ms,errors<1%")
TRUTH = {"http.client": 70.0, "urllib3": 640.0}


def searched(held, highest: float = 1e6) -> list[tuple[float, bool]]:
    """The outcomes of a search. `held`: tells whether a trial holds a rate."""
    outcomes: list[tuple[float, bool]] = []
    while (rate := next_rate(outcomes, 100.0, 4.0, highest)) is not None:
        outcomes.append((rate, held(rate)))
        assert len(outcomes) <= 60
    return outcomes


@pytest.mark.parametrize("truth", [4.1, 99.9, 160.0, 123_456.0])
def test_a_search_ends_within_its_resolution_around_the_truth(truth):
    """It takes few trials, and tries no rate beyond twice the truth except
    the first.
    """
    outcomes = searched(lambda rate: rate <= truth)
    held, failed = bracket_of(outcomes)
    assert held <= truth < failed <= 1.025 * held
    assert len(outcomes) <= 28
    assert max(rate for rate, _ in outcomes) <= max(100, 2 * truth)


def test_one_disturbed_trial_does_not_move_the_result():
    """A rate is decided when two of its trials agree.

    On the way up, one trial is enough.
    """
    for disturbed in range(12):
        count = itertools.count()

        def holds(rate: float, count=count, disturbed=disturbed) -> bool:
            return next(count) != disturbed and rate <= 160

        held, failed = bracket_of(searched(holds))
        assert held <= 160 < failed <= 1.025 * held
    outcomes = searched(lambda rate: rate <= 160)
    assert [rate for rate, _ in outcomes[:4]] == [100, 200, 200, 100]


def test_a_search_ends_at_its_limits():
    """An end of the bracket is missing if even the lowest rate does not hold, or the
    highest does.
    """
    nothing = searched(lambda _: False)
    assert [rate for rate, _ in nothing[::2]] == [100, 50, 25, 12.5, 6.25, 4]
    assert bracket_of(nothing) == (None, 4)
    everything = searched(lambda _: True, highest=1000)
    assert [rate for rate, _ in everything] == [100, 200, 400, 800, 1000, 1000]
    assert bracket_of(everything) == (1000, None)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({}, None),
        ({"p99": 0.25}, "p99 250 ms"),
        ({"errors": {"reset": 10}}, "errors 1.00 %"),
        ({"achieved_per_second": 189.0}, "189 of 200 requests/s were sent"),
        ({"served": 195.0}, "the backlog grew by 11 requests in half the trial"),
    ],
)
def test_a_trial_holds_its_rate_while_its_conditions_hold_and_no_backlog_grows(
    changes, why
):
    """A backlog counts even if p99 is still low: 5 missed requests per second are 12 in
    half of 5 s.
    """
    trial = a_searched_trial("urllib3", 1, 200.0, **changes)
    assert why_not_held(trial, CONDITIONS) == why


def searching(rounds: int = 2):
    """A run that has not begun."""
    return planned(*TRUTH, rounds=rounds, more={"find_max": CONDITIONS}, duration=5.0)


def measured(trial, workload, *_: object) -> Trial:
    """A trial that holds its rate up to its strategy's highest."""
    assert workload.load.rate == trial.search_rate
    assert workload.load.duration == 5.0
    assert workload.load.max_late == 5.0
    served = TRUTH[trial.strategy]
    done = a_searched_trial(
        trial.strategy, trial.round, trial.search_rate, served=served
    )
    return done.updated(planned=trial)


def test_arms_compare_by_their_highest_rates_in_every_report(store):
    """The interval covers the rates that held and did not hold.

    The run file has every trial.
    """
    run = execute(searching(rounds=3), measured, store, Recorder())
    assert store.read(NAME) == run
    assert run.status == "done"
    assert len(run.trials) == 6
    orders = sorted(trial.planned.order for trial in run.every_trial)
    assert orders == list(range(run.measured))
    for trial in run.trials:
        truth = TRUTH[trial.planned.arm]
        assert 0.965 < trial.highest_rate.middle / truth < 1.05
    trials = run.trials_of("urllib3")
    rate = typical_rate(trials)
    held = min(trial.highest_rate.held for trial in trials)
    not_held = max(trial.highest_rate.not_held for trial in trials)
    assert rate.low <= held < 640
    assert 640 < not_held <= rate.high
    (group,) = groups_of(run)
    best, other = group.rows
    assert best.name == "urllib3"
    assert best.first
    assert other.ratio.value == pytest.approx(640 / 70, rel=0.05)
    ((answer,),) = group_answers([group])
    assert answer.startswith(f"urllib3 held {rate.value:.0f} (")
    for report in (as_markdown, as_html):
        assert f"{rate.value:.0f} (" in report.render(run)
    rows = list(csv.DictReader(io.StringIO(as_csv.render(run))))
    assert len(rows) == run.measured
    arms = {row["arm"] for row in rows if row["highest_requests_per_second"]}
    assert arms == set(TRUTH)
    (other,) = compare(run, [run.updated(run="again")]).others
    assert list(other.changes["urllib3"]) == ["highest_rate"]


def test_a_chart_of_a_search_has_the_p99_of_each_trial_at_its_rate(store):
    """Lower bounds are left out.

    No chart shows the time that a number of requests takes.
    """
    run = execute(searching(rounds=3), measured, store, Recorder())
    first, *probes = run.probes
    bounded = quantiles(p99=9.0, at_least=["p99"])
    first = with_changes(first, latency_seconds=bounded)
    run = run.updated(probes=[first, *probes])
    (sweep,) = sweeps_of(run)
    drawn = []
    for curve in sweep.curves:
        assert curve.label.endswith(") requests/s")
        for point in curve.points:
            for order, seconds in point.rounds.items():
                drawn.append((point.arm, point.place, order, seconds))
    expected = []
    for trial in probes:
        planned = trial.planned
        expected.append((planned.arm, planned.search_rate, planned.order, 0.009))
    assert sorted(drawn) == sorted(expected)
    assert [*sweep.ticks] == sorted({rate for _, rate, *_ in drawn})
    assert [curve.label.partition(":")[0] for curve in sweep.curves] == [*TRUTH]
    page = as_html.render(run)
    assert 'id="sweep"' in page
    assert 'id="times"' not in page


def test_a_search_that_is_interrupted_goes_on_where_it_was(store):
    """It tries the same rates as a search that was not interrupted."""
    whole = execute(searching(), measured, store, Recorder())

    def interrupted(trial, *rest):
        done = measured(trial, *rest)
        if trial.order == 7:
            raise TrialInterrupted(done.updated(status="lost", reason="interrupted"))
        return done

    message = r"interrupted in trial 8 of \d+; what was done is in"
    with pytest.raises(IncompleteRun, match=message):
        execute(searching(), interrupted, store, Recorder())
    stopped = store.read(NAME)
    assert stopped.status == "incomplete"
    assert len(stopped.probes) == 8
    assert stopped.probes[7].status == "lost"
    again = execute(resume_run(stopped, SURROUNDINGS), measured, store, Recorder())
    assert again.status == "done"
    assert tried(again) == tried(whole)
    for trial, expected in zip(again.trials, whole.trials, strict=True):
        assert trial.highest_rate == expected.highest_rate


def tried(run) -> list[tuple[str, int, float]]:
    """Arm, round and rate of each trial of its searches that ended."""
    planned = [trial.planned for trial in run.probes if trial.status == "done"]
    return [(trial.arm, trial.round, trial.search_rate) for trial in planned]


def test_an_arm_that_holds_no_rate_has_a_failed_trial_with_the_reason(
    store, monkeypatch
):
    monkeypatch.setitem(TRUTH, "http.client", 1.0)
    run = execute(searching(rounds=1), measured, store, Recorder())
    failed, done = sorted(run.trials, key=lambda trial: trial.planned.arm)
    assert run.status == "incomplete"
    assert failed.status == "failed"
    assert done.status == "done"
    reason = "it held no rate: at 4 requests/s, the backlog grew"
    assert failed.reason.startswith(reason)
