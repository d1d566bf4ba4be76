"""Thresholds: how they are written, and when they fail for a run, its environments, and
its changes since another.
"""

from __future__ import annotations

import numpy as np
import pytest

from clientlab.errors import FieldError, LabError
from clientlab.judging.comparison import compare
from clientlab.judging.ranking import contrasts_by
from clientlab.judging.thresholds import (
    check_limits,
    exit_code_of,
    judge_changes,
    judge_run,
    parse_change,
    parse_threshold,
)
from clientlab.reports.answers import version_answers
from clientlab.reports.headline import threshold_sentence
from clientlab.results.trial import Trial
from clientlab.workload.workload import make_workload
from clients.documents import (
    a_failed_trial,
    a_run,
    a_trial,
    an_open_trial,
    quantiles,
    rounds,
    with_changes,
)

STEADY = (0.99, 1.0, 1.01)
SLOWER = (1.29, 1.3, 1.31)
SPREAD = (1.0, 1.2, 1.4)


def a_run_of(*walls: float, **changes):
    return a_run(*rounds("urllib3", *walls, **changes))


def outcome(text: str, before, after, *, strict: bool = False) -> str:
    threshold = parse_change(text)
    compared = compare(before, [after], [threshold.figure])
    (judged,) = judge_changes(compared, [threshold], strict=strict)
    return judged.outcome


def judge(text: str, run, *, strict: bool = False):
    """Judge a run by one threshold."""
    (judged,) = judge_run(run, [parse_threshold(text)], strict=strict)
    return judged


def limit_outcome(text: str, run, *, strict: bool = False) -> str:
    return judge(text, run, strict=strict).outcome


def strictly(outcome: str) -> str:
    """Return what is told instead of an outcome if only estimates count."""
    return "failed" if outcome == "not sure" else outcome


def in_environment(name: str, *trials: Trial) -> list[Trial]:
    return [
        with_changes(trial, arm=f"urllib3 in {name}", environment=name)
        for trial in trials
    ]


def in_environments(base: list[Trial], head: list[Trial]):
    """A run in two environments."""
    return a_run(*in_environment("base", *base), *in_environment("head", *head))


def with_ratios(*ratios: float, **of_head):
    """A run in two environments with these ratios of wall times, by round.

    Its rounds differ widely.
    """
    walls = (1.0, 10.0, 2.0, 5.0, 3.0, 7.0)
    longer = [wall * ratio for wall, ratio in zip(walls, ratios, strict=True)]
    return in_environments(
        rounds("urllib3", *walls), rounds("urllib3", *longer, **of_head)
    )


def with_drops(*counts: int) -> list[Trial]:
    """The rounds of an open load, with so many dropped requests."""
    return [
        an_open_trial("urllib3", number, dropped=count)
        for number, count in enumerate(counts, start=1)
    ]


@pytest.mark.parametrize(
    ("text", "walls", "found"),
    [
        ("wall +10%", STEADY, "held"),
        ("wall +10%", SLOWER, "failed"),
        ("wall +10%", SPREAD, "not sure"),
        ("throughput -5%", SLOWER, "failed"),
    ],
)
def test_a_change_fails_by_its_whole_interval_or_strictly_by_its_estimate(
    text, walls, found
):
    before = a_run_of(*STEADY)
    after = a_run_of(*walls)
    assert outcome(text, before, after) == found
    assert outcome(text, before, after, strict=True) == strictly(found)


@pytest.mark.parametrize(
    ("text", "failed", "found"), [("errors +0", 1, "failed"), ("errors +1%", 9, "held")]
)
def test_errors_are_counted_and_need_no_interval(text, failed, found):
    after = a_run_of(1.0, errors={"reset": failed})
    assert outcome(text, a_run_of(1.0), after) == found


@pytest.mark.parametrize(
    ("text", "walls", "found", "is_close"),
    [
        ("wall +2%", (1.059, 1.06, 1.061), "not sure", True),
        ("wall +20%", SLOWER, "failed", False),
    ],
)
def test_a_change_that_is_less_than_runs_may_differ_by_is_not_sure(
    text, walls, found, is_close
):
    """However narrow the intervals are: from 1 s, 1.06 s is less than 10 %, and 1.3 s
    is more.
    """
    compared = compare(a_run_of(0.999, 1.0, 1.001), [a_run_of(*walls)])
    (judged,) = judge_changes(compared, [parse_change(text)])
    assert judged.outcome == found
    sentence = threshold_sentence(judged)
    assert ("runs may differ by 10.0 %" in sentence) == is_close


@pytest.mark.parametrize(
    ("counts", "found"), [((0, 3, 0, 0), "not sure"), ((5, 3, 4, 6), "failed")]
)
def test_errors_of_several_rounds_have_an_interval(counts, found):
    trials = [
        a_trial("urllib3", n, errors={"reset": count} if count else {})
        for n, count in enumerate(counts, 1)
    ]
    assert outcome("errors +0", a_run_of(*[1.0] * 4), a_run(*trials)) == found


def test_an_arm_that_finished_no_trial_fails_every_threshold():
    """A figure that no finished trial has, in either run, cannot be judged."""
    dead = a_run(a_failed_trial("urllib3"))
    steady = a_run_of(*STEADY)
    assert outcome("wall +10%", steady, dead) == "failed"
    assert limit_outcome("p99 > 1s", dead) == "failed"
    assert outcome("wall +10%", dead, steady) == "not sure"
    assert limit_outcome("overhead > 1s", LIMITED) == "not sure"
    assert outcome("overhead +1%", LIMITED, LIMITED) == "not sure"
    without_latency = a_run_of(*STEADY, latency_seconds=None)
    assert outcome("p999 +1%", steady, without_latency) == "not sure"


@pytest.mark.parametrize(
    ("requests", "errors", "share"), [(0, {}, 0.0), (1000, {"connect": 1000}, 0.8)]
)
def test_errors_fail_if_a_trial_failed(requests, errors, share):
    """However many are allowed, and even if the trial sent nothing."""
    failed = [
        a_failed_trial("urllib3", number=number, requests=requests, errors=errors)
        for number in (2, 3, 4, 5)
    ]
    run = a_run(a_trial("urllib3"), *failed)
    compared = compare(a_run_of(*STEADY), [run])
    (change,) = judge_changes(compared, [parse_change("errors +90%")])
    for judged in (change, judge("errors > 90%", run)):
        assert judged.outcome == "failed"
        assert judged.lost == 4
        assert judged.found == pytest.approx(share)


def test_a_failed_trial_that_was_repeated_in_its_round_does_not_count():
    run = a_run(a_failed_trial("urllib3"), a_trial("urllib3"))
    assert limit_outcome("errors > 0", run) == "held"


def test_too_few_rounds_cannot_be_judged_unless_the_estimate_decides():
    before = a_run_of(*STEADY)
    after = a_run_of(2.0, 2.0)
    assert outcome("wall +10%", before, after) == "not sure"
    assert outcome("wall +10%", before, after, strict=True) == "failed"
    single = a_run_of(2.0)
    judged = judge("wall > 1s", single)
    assert judged.outcome == "not sure"
    assert "it has 1 of at least 3 rounds" in judged.reason
    assert limit_outcome("wall > 1s", single, strict=True) == "failed"
    assert limit_outcome("wall > 3s", single) == "held"


@pytest.mark.parametrize(
    ("dropped", "found"),
    [((9, 30, 2, 40), "not sure"), ((9, 30), "not sure"), ((30,) * 4, "failed")],
)
def test_the_share_of_dropped_requests_is_judged_by_its_interval(dropped, found):
    """It is estimated, unlike errors: 1 % more is allowed, and 0.2 % were dropped
    before.
    """
    before = a_run(*with_drops(*[2] * len(dropped)))
    after = a_run(*with_drops(*dropped))
    assert outcome("dropped +1%", before, after) == found
    assert limit_outcome("dropped > 1%", after) == found


def test_a_share_changes_in_points_between_environments():
    """And not by its ratio, which is 10."""
    run = in_environments(with_drops(2, 2, 2, 2), with_drops(20, 20, 20, 20))
    judged = judge("dropped +1%", run)
    assert judged.outcome == "failed"
    assert judged.found == pytest.approx(0.018)


@pytest.mark.parametrize("text", ["wall +5%", "errors +0", "p50 +2ms"])
def test_a_baseline_that_failed_is_named_and_not_the_arm_that_is_compared(text):
    failed = [a_failed_trial("urllib3", number=number) for number in (1, 2, 3)]
    judged = judge(text, in_environments(failed, rounds("urllib3")))
    assert judged.outcome == "not sure"
    assert exit_code_of([judged]) == 3
    sentence = threshold_sentence(judged)
    assert "nothing to compare with: urllib3 in base has no " in sentence


def test_a_threshold_that_failed_decides_the_exit_code():
    not_sure = judge("wall > 1s", a_run_of(2.0))
    held = judge("wall > 3s", a_run_of(2.0))
    failed = judge("wall > 1s", a_run_of(*SLOWER))
    assert exit_code_of([]) == 0
    assert exit_code_of([not_sure]) == 3
    assert exit_code_of([held]) == 0
    assert exit_code_of([not_sure, held, failed]) == 1
    both_sides = judge("wall > 1.1s", a_run_of(*SPREAD))
    assert both_sides.outcome == "not sure"
    assert exit_code_of([both_sides]) == 0


LIMITED = a_run_of(
    *STEADY,
    latency_seconds=quantiles(0.002, 0.05),
    errors={"reset": 10},
    peak_pss_bytes=100_000_000,
    cpu_seconds=0.2,
)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("p99 > 50ms", "held"),
        ("p99 > 49.9ms", "failed"),
        ("p50>1999us", "failed"),
        ("cpu > 199µs", "failed"),
        ("throughput < 1000", "held"),
        ("throughput < 1001/s", "not sure"),
        ("throughput < 1100/s", "failed"),
        ("errors > 1%", "held"),
        ("errors > 0.9%", "failed"),
        ("memory > 95MiB", "failed"),
        ("connections > 1", "held"),
    ],
)
def test_a_limit_is_judged_by_the_interval_of_the_figure_that_the_report_shows(
    text, found
):
    assert limit_outcome(text, LIMITED) == found
    assert limit_outcome(text, LIMITED, strict=True) == strictly(found)


def test_many_arms_at_their_limit_seldom_fail_a_build():
    """In 5 % of the runs, one of eight arms whose typical wall time is the limit may
    fail.
    """
    draw = np.random.default_rng(3)
    threshold = parse_threshold("wall > 1s")
    failed = 0
    for _ in range(200):
        trials = []
        for arm in range(8):
            trials += rounds(f"arm {arm}", *draw.lognormal(0, 0.1, 5))
        results = judge_run(a_run(*trials), [threshold])
        failed += any(judged.outcome == "failed" for judged in results)
    assert failed / 200 <= 0.05


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (parse_change, "p99 > 50ms"),
        (parse_threshold, "p99 -10%"),  # the good direction
        (parse_threshold, "p99 < 50ms"),
        (parse_threshold, "p99 +5"),  # not in percent
        (parse_threshold, "p99 +nan%"),
        (parse_threshold, "memory > 5mb"),
        (parse_threshold, "p98 > 1s"),
    ],
)
def test_a_threshold_that_is_written_wrongly_is_refused(read, text):
    with pytest.raises(LabError, match="fail_on: ") as caught:
        read(text)
    assert repr(text) in str(caught.value)


def test_a_threshold_may_be_for_one_arm():
    run = a_run(*rounds("a", *STEADY), *rounds("b: c", *STEADY))
    limits = [parse_threshold("b: c: wall > 2s"), parse_threshold("wall > 0.5s")]
    assert [(judged.arm, judged.outcome) for judged in judge_run(run, limits)] == [
        ("b: c", "held"),
        ("a", "failed"),
        ("b: c", "failed"),
    ]
    compared = compare(run, [run])
    (change,) = judge_changes(compared, [parse_change("a: wall +10%")])
    assert change.arm == "a"
    assert change.outcome == "held"


def a_restless_run(level: float):
    noise = np.exp(0.05 * np.resize([-1, 0.3, 1, -0.3], 8))
    return a_run_of(*(level * noise))


@pytest.mark.parametrize(("level", "is_close"), [(1.05, False), (1.0201, True)])
def test_what_is_not_sure_says_how_many_rounds_would_decide(level, is_close):
    run = a_restless_run(level)
    compared = compare(a_restless_run(1.0), [run], gated={(None, "wall")})
    (change,) = judge_changes(compared, [parse_change("wall +2%")])
    for judged in (change, judge("wall > 1.02s", run)):
        assert judged.outcome == "not sure"
        assert (judged.rounds is None) == is_close
        assert is_close or str(judged.rounds) in threshold_sentence(judged)


def test_what_the_schedule_of_an_open_load_decides_is_no_threshold():
    run = a_run(*with_drops(0, 0, 0))
    with pytest.raises(FieldError, match=r"arm 'urllib3' has an open load.*judge p99"):
        outcome("throughput -5%", run, run)
    assert outcome("p99 +5%", run, run) == "held"


@pytest.mark.parametrize(
    ("ratios", "found"),
    [
        ((1.10, 1.11, 1.09, 1.10, 1.12, 1.10), "failed"),
        ((1.04, 1.04, 1.04, 1.04, 1.04, 1.04), "held"),
        ((1.30, 0.95, 1.30, 1.00, 1.40, 1.20), "not sure"),
    ],
)
@pytest.mark.parametrize("text", ["wall +5%", "throughput -4.7%"])
def test_a_change_between_environments_is_paired_by_round(text, ratios, found):
    run = with_ratios(*ratios)
    assert limit_outcome(text, run) == found
    assert limit_outcome(text, run, strict=True) == strictly(found)


def test_a_limit_is_for_both_environments_and_a_change_for_the_second():
    limit = parse_threshold("p99 > 1s")
    change = parse_threshold("wall +4%")
    run = with_ratios(1.06, 1.07, 1.06, 1.08, 1.055, 1.06)
    results = judge_run(run, [limit, change])
    assert [(judged.threshold, judged.arm, judged.outcome) for judged in results] == [
        (limit, "urllib3 in base", "held"),
        (limit, "urllib3 in head", "held"),
        (change, "urllib3 in head", "failed"),
    ]


def test_servers_are_compared_like_environments_but_not_by_the_cpu_time_of_clients():
    run = with_ratios(*[1.3] * 6)
    arms = [
        arm.updated(environment=None, server=arm.environment)
        for arm in run.experiment.arms
    ]
    plan = run.experiment.updated(arms=arms, environments={})
    trials = [
        with_changes(trial, environment=None, server=trial.planned.environment)
        for trial in run.trials
    ]
    other = run.updated(experiment=plan, trials=trials)
    check_limits([parse_threshold("wall +5%")], plan)
    assert limit_outcome("wall +5%", run) == "failed"
    assert limit_outcome("wall +5%", other) == "failed"
    (of_environments,) = contrasts_by("environment", run)
    (of_servers,) = contrasts_by("server", other)
    assert of_environments.time == of_servers.time
    assert " CPU time " in version_answers(run)[0][0]
    assert " CPU time " not in version_answers(other)[0][0]


@pytest.mark.parametrize(
    ("base", "head", "found"), [(5, 1000, "not sure"), (1000, 5, "failed")]
)
def test_only_errors_count_of_an_arm_that_was_never_at_its_concurrency(
    base, head, found
):
    """`base`, `head`: requests, of which 32 were to be in flight."""
    run = in_environments(
        rounds("urllib3", concurrency=32, requests=base),
        rounds("urllib3", 1.3, 1.3, 1.3, concurrency=32, requests=head),
    )
    assert limit_outcome("wall +5%", run) == found
    assert limit_outcome("errors +0", run) == "held"


@pytest.mark.parametrize(
    ("text", "of_head", "found"),
    [
        ("errors +0", {"errors": {"reset": 1}}, "failed"),
        ("connections +0", {"connections_opened": 2}, "failed"),
        (
            "p99 +5%",
            {
                "latency_seconds": quantiles(p99=0.004, at_least=["p99"]),
                "errors": {"reset": 20},
            },
            "failed",
        ),
    ],
)
def test_errors_are_counted_in_environments_and_a_lower_bound_fails(
    text, of_head, found
):
    run = with_ratios(*[1.0] * 6, **of_head)
    assert limit_outcome(text, run) == found


def with_latencies(*more: float, at_least: tuple[str, ...] = ()):
    """A run in two environments. p50 is about 10 ms in the first one, and longer by
    these seconds in the second one.

    p99 is five times p50.
    """
    base = []
    head = []
    for number, longer in enumerate(more, 1):
        p50 = 0.01 * (1 + number / 100)
        latencies = quantiles(p50, 5 * p50)
        base.append(a_trial("urllib3", number, latency_seconds=latencies))
        p50 += longer
        latencies = quantiles(p50, 5 * p50, at_least)
        head.append(a_trial("urllib3", number, latency_seconds=latencies))
    return in_environments(base, head)


@pytest.mark.parametrize(
    ("text", "more", "found", "words"),
    [
        ("p50 +2ms", [0.001] * 3, "held", "+1.00 ms (+1.00 ms to +1.00 ms)"),
        (
            "p50 +2ms",
            [0.003] * 3,
            "failed",
            "median latency +3.00 ms (+3.00 ms to +3.00 ms)",
        ),
        (
            "p50 +2ms",
            [0.0018, 0.003, 0.0022],
            "not sure",
            "more rounds make it narrower",
        ),
        ("p50 +0.0029s", [0.003] * 3, "failed", "+3.00 ms"),
        (
            "p99 +10ms",
            [0.003] * 4,
            "not sure",
            "+15.0 ms, and it cannot be judged: an interval needs more",
        ),
        ("p99 +10ms", [0.003] * 5, "failed", "+15.0 ms (+15.0 ms to +15.0 ms)"),
        ("urllib3 in head: p50 +4ms", [0.003] * 3, "held", "+3.00 ms"),
    ],
)
def test_a_change_may_be_in_seconds(text, more, found, words):
    """Between servers and environments of a run: 3 ms matter where 5 % do not, and the
    other way round.
    """
    run = with_latencies(*more)
    judged = judge(text, run)
    assert judged.outcome == found
    assert words in threshold_sentence(judged)
    assert limit_outcome(text, run, strict=True) == strictly(found)


@pytest.mark.parametrize(("text", "count"), [("p50 +2ms", 2), ("p99 +10ms", 4)])
def test_a_change_in_seconds_without_an_interval_cannot_be_judged(text, count):
    judged = judge(text, with_latencies(*[0.003] * count))
    assert judged.outcome == "not sure"
    assert exit_code_of([judged]) == 3


def test_a_change_in_seconds_without_a_figure_cannot_be_judged():
    unknown = quantiles().updated(p999=None)
    trials = rounds("urllib3", *[1.0] * 5, latency_seconds=unknown)
    judged = judge("p999 +2ms", in_environments(trials, trials))
    assert judged.outcome == "not sure"
    assert exit_code_of([judged]) == 3


def test_a_change_in_seconds_of_a_lower_bound_fails_and_two_runs_have_none():
    run = with_latencies(*[0.001] * 5, at_least=("p99",))
    judged = judge("p99 +10ms", run)
    assert judged.outcome == "failed"
    assert judged.at_least
    with pytest.raises(FieldError, match="only servers or environments of one run"):
        parse_change("p50 +2ms")
    plan = run.experiment.updated(rounds=3, budget=60.0)
    check_limits([parse_threshold("p99 +10ms")], plan)
    with pytest.raises(FieldError, match="no earlier environment or server"):
        check_limits([parse_threshold("p50 +2ms")], a_run_of(*STEADY).experiment)


PLAN = with_ratios(*[1.0] * 6).experiment
BASE = PLAN.arms[0]


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        ("wall +5%", {"arms": [BASE]}),  # nothing to compare with
        ("urllib3 in base: wall +5%", {}),
        ("wall +5%", {"rounds": 2}),  # no interval
        ("p99 +5ms", {"rounds": 4}),  # one of p99 needs five
        # the schedule decides it
        ("throughput -5%", {"workloads": {"workload": make_workload(rate=50.0)}}),
        ("late_p99 > 5ms", {}),  # only an open load has it
        # it needs a thousand requests
        ("p999 > 1s", {"workloads": {"workload": make_workload(requests=50)}}),
        # its strategy hides its connections
        ("connections > 1", {"arms": [BASE.updated(strategy="pyqwest")]}),
    ],
)
def test_a_threshold_that_no_run_could_be_judged_by_is_refused_before_the_run(
    text, changes
):
    with pytest.raises(FieldError) as caught:
        check_limits([parse_threshold(text)], PLAN.updated(**changes))
    assert repr(text) in str(caught.value)
