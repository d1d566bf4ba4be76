"""Thresholds: how they are written, and when they fail."""

from __future__ import annotations

import numpy as np
import pytest

from clientlab.errors import FieldError, LabError
from clientlab.judging.comparison import compare
from clientlab.judging.thresholds import ThresholdResult, change_threshold, judge_changes, judge_limits, limit
from clientlab.reports.headline import sentence
from clientlab.results.trial import OpenLoad
from clients.documents import a_failed_trial, a_run, a_trial, quantiles


def a_run_of(*walls: float, **changes):
    """A run of the arm urllib3, a trial for each wall time."""
    return a_run(*(a_trial("urllib3", number, wall, **changes) for number, wall in enumerate(walls, 1)))


STEADY = (0.99, 1.0, 1.01)


def test_what_the_schedule_of_an_open_load_decides_is_no_threshold():
    """Its throughput is planned; p99 is what a server can miss."""
    load = OpenLoad(
        planned_per_second=100.0, achieved_per_second=100.0, lateness_seconds=None, sent_seconds=None, dropped=0,
        most_backlog=1, most_in_flight=1,
    )  # fmt: skip
    run = a_run_of(*STEADY, open_load=load)
    with pytest.raises(FieldError, match="the schedule of arm 'urllib3' decides it; judge p99"):
        judge_changes(compare(run, [run]), [change_threshold("throughput -5%")], strict=False)
    assert judge_changes(compare(run, [run]), [change_threshold("p99 +5%")], strict=False)[0].outcome == "held"


def outcome(text: str, before, after, *, strict: bool = False) -> str:
    """What one threshold says of two runs."""
    threshold = change_threshold(text)
    (judged,) = judge_changes(compare(before, [after], [threshold.figure]), [threshold], strict=strict)
    return judged.outcome


@pytest.mark.parametrize(
    ("text", "walls", "found", "strict"),
    [
        ("wall +10%", STEADY, "held", "held"),
        ("wall +10%", (1.29, 1.3, 1.31), "failed", "failed"),
        ("wall +50%", (1.29, 1.3, 1.31), "held", "held"),
        ("wall +10%", (1.0, 1.2, 1.4), "not sure", "failed"),
        ("throughput -5%", (1.29, 1.3, 1.31), "failed", "failed"),
        ("throughput -5%", STEADY, "held", "held"),
    ],
)
def test_a_change_fails_where_its_whole_interval_is_beyond_and_strictly_where_its_estimate_is(
    text, walls, found, strict
):
    """What lies between is not sure."""
    assert outcome(text, a_run_of(*STEADY), a_run_of(*walls)) == found
    assert outcome(text, a_run_of(*STEADY), a_run_of(*walls), strict=True) == strict


@pytest.mark.parametrize(
    ("text", "errors", "found"),
    [("errors +0", {}, "held"), ("errors +0", {"reset": 1}, "failed"), ("errors +1%", {"reset": 9}, "held"),
     ("errors +1%", {"reset": 11}, "failed")],
)  # fmt: skip
def test_errors_are_counted_and_need_no_interval(text, errors, found):
    """One failed request more than before is one more; a percentage is one of all requests. One round will do."""
    assert outcome(text, a_run_of(1.0), a_run_of(1.0, errors=errors)) == found


def test_an_arm_that_finished_no_trial_fails_every_threshold():
    """A build does not turn green because nothing was measured."""
    assert outcome("wall +10%", a_run_of(*STEADY), a_run(a_failed_trial("urllib3"))) == "failed"
    with pytest.raises(LabError, match="'wall \\+10%': the baseline has no wall time for arm 'urllib3'"):
        outcome("wall +10%", a_run(a_failed_trial("urllib3")), a_run_of(*STEADY))


@pytest.mark.parametrize("text", ["errors +90%", "errors > 90%"])
@pytest.mark.parametrize("requests", [0, 1000])
def test_errors_fail_where_a_trial_failed(text, requests):
    """Whether it sent requests, of which none succeeded, or never began; however much is allowed."""
    dead = [a_failed_trial("urllib3", number=n, requests=requests, errors={"connect": requests} if requests else {})
            for n in (2, 3, 4, 5)]  # fmt: skip
    run = a_run(a_trial("urllib3"), *dead)
    if ">" in text:
        (judged,) = judge_limits(run, [limit(text)])
    else:
        (judged,) = judge_changes(compare(a_run_of(*STEADY), [run]), [change_threshold(text)], strict=False)
    assert (judged.outcome, judged.lost) == ("failed", 4)
    assert judged.found == pytest.approx(0.8 if requests else 0.0)


def test_a_trial_that_was_lost_and_made_good_fails_nothing():
    """It was measured in the same round, later."""
    run = a_run(a_failed_trial("urllib3", "worker lost: it went"), a_trial("urllib3"))
    assert outcome("errors +0", a_run_of(1.0), run) == "held"
    assert [one.outcome for one in judge_limits(run, [limit("errors > 0")])] == ["held"]


def test_too_few_rounds_are_refused_rather_than_passed():
    """Unless the bare ratio is asked for."""
    with pytest.raises(LabError, match=r"arm 'urllib3' has 2 of at least 3 rounds.*strict"):
        outcome("wall +10%", a_run_of(*STEADY), a_run_of(2.0, 2.0))
    assert outcome("wall +10%", a_run_of(*STEADY), a_run_of(2.0, 2.0), strict=True) == "failed"


LIMITED = a_run_of(
    *STEADY, latency_seconds=quantiles(0.002, 0.05), errors={"reset": 10}, peak_pss_bytes=100_000_000, cpu_seconds=0.2,
)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("p99 > 50ms", "held"), ("p99 > 49.9ms", "failed"), ("p50>1999us", "failed"),
        ("throughput < 1000", "held"), ("throughput < 1001/s", "not sure"),
        ("throughput < 1100/s", "failed"),
        ("errors > 1%", "held"), ("errors > 0.9%", "failed"), ("memory > 100MB", "held"), ("memory > 95MiB", "failed"),
        ("cpu > 199µs", "failed"), ("connections > 1", "held"), ("connections > 0", "failed"),
    ],
)  # fmt: skip
def test_a_limit_is_held_against_the_interval_of_the_figure_that_the_report_shows(text, found):
    """The median of the rounds, with units; errors over all requests."""
    (judged,) = judge_limits(LIMITED, [limit(text)])
    assert judged.outcome == found


def test_strictly_the_median_decides_a_limit():
    """Which needs no interval: one round will do. Otherwise too few rounds beyond a limit are refused."""
    once = a_run_of(2.0)
    for run, text, strict, outcome in (
        (LIMITED, "throughput < 1001", True, "failed"),
        (once, "wall > 1s", True, "failed"),
        (once, "wall > 3s", False, "held"),
    ):
        (judged,) = judge_limits(run, [limit(text)], strict=strict)
        assert judged.outcome == outcome
    with pytest.raises(LabError, match=r"arm 'urllib3' has 1 of at least 3 rounds.*strict"):
        judge_limits(once, [limit("wall > 1s")])


def test_many_arms_at_their_limit_seldom_fail_a_build():
    """Eight arms whose typical wall time is the limit: 200 runs of five rounds, in 5 % of which one may fail."""
    draw, wall, failed = np.random.default_rng(3), limit("wall > 1s"), 0
    for _ in range(200):
        run = a_run(
            *(a_trial(f"arm {arm}", number, draw.lognormal(0, 0.1)) for arm in range(8) for number in range(1, 6))
        )
        failed += any(one.outcome == "failed" for one in judge_limits(run, [wall]))
    assert failed / 200 <= 0.05


def test_a_limit_fails_for_an_arm_that_finished_no_trial():
    """And is refused where its trials have no such figure."""
    (judged,) = judge_limits(a_run(a_failed_trial("urllib3")), [limit("p99 > 1s")])
    assert (judged.outcome, judged.found) == ("failed", None)
    with pytest.raises(LabError, match="has no median overhead for arm 'urllib3'"):
        judge_limits(LIMITED, [limit("overhead > 1s")])


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (change_threshold, "p99 > 50ms"),
        (change_threshold, "p98 +10%"),
        (change_threshold, "p99 -10%"),  # the good direction
        (change_threshold, "p99 +5"),  # not in percent
        (change_threshold, "p99 +nan%"),
        (limit, "p99 +10%"),
        (limit, "p99 < 50ms"),  # it would fail good results
        (limit, "memory > 5mb"),
        (limit, "p98 > 1s"),
    ],
)
def test_a_threshold_that_is_written_wrongly_is_refused(read, text):
    """The refusal quotes the threshold."""
    with pytest.raises(LabError, match="fail_on: ") as caught:
        read(text)
    assert repr(text) in str(caught.value)


def test_a_threshold_may_be_for_one_arm():
    """The others are not judged by it, and the fewer the thresholds, the narrower the intervals."""
    run = a_run(*(a_trial(name, number, 1.0 + number / 100) for name in ("a", "b: c") for number in (1, 2, 3)))
    judged = judge_limits(run, [limit("b: c: wall > 2s"), limit("wall > 0.5s")])
    assert [(one.arm, one.outcome) for one in judged] == [("b: c", "held"), ("a", "failed"), ("b: c", "failed")]
    changes = judge_changes(compare(run, [run]), [change_threshold("a: wall +10%")], strict=False)
    assert [(one.arm, one.outcome) for one in changes] == [("a", "held")]


def judged_in(rounds: int, level: float) -> list[ThresholdResult]:
    """A change and a limit of 2 %, of runs whose rounds vary by 5 % around 1 s and around a level."""
    base, run = (a_run_of(*(at * np.exp(0.05 * np.resize([-1, 0.3, 1, -0.3], rounds)))) for at in (1.0, level))
    changes = judge_changes(compare(base, [run], gated={(None, "wall")}), [change_threshold("wall +2%")], strict=False)
    return [*changes, *judge_limits(run, [limit("wall > 1.02s")])]


@pytest.mark.parametrize("place", [0, 1])
def test_what_is_not_sure_says_how_many_rounds_would_decide(place):
    """With that many at this spread it fails; with half of them it does not. None where more than 100 are needed."""
    few, close = judged_in(8, 1.045)[place], judged_in(8, 1.0201)[place]
    assert (few.outcome, close.outcome, close.rounds) == ("not sure", "not sure", None)
    assert judged_in(4 * round(few.rounds / 3), 1.045)[place].outcome == "failed"
    assert judged_in(4 * round(few.rounds / 8), 1.045)[place].outcome == "not sure"
    assert str(few.rounds) in sentence(few)
