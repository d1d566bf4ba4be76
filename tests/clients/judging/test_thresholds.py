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
from clientlab.reports.headline import threshold_sentence, version_answers
from clientlab.results.plan import Arm, EnvironmentSpec
from clientlab.workload.workload import make_workload
from clients.documents import (
    a_failed_trial,
    a_run,
    a_trial,
    an_open_trial,
    quantiles,
    with_changes,
)

STEADY = (0.99, 1.0, 1.01)
SLOWER = (1.29, 1.3, 1.31)
SPREAD = (1.0, 1.2, 1.4)


def a_run_of(*walls: float, **changes):
    return a_run(
        *(
            a_trial("urllib3", number, wall, **changes)
            for number, wall in enumerate(walls, 1)
        )
    )


def outcome(text: str, before, after, *, strict: bool = False) -> str:
    threshold = parse_change(text)
    (judged,) = judge_changes(
        compare(before, [after], [threshold.figure]), [threshold], strict=strict
    )
    return judged.outcome


def limit_outcome(text: str, run, *, strict: bool = False) -> str:
    (judged,) = judge_run(run, [parse_threshold(text)], strict=strict)
    return judged.outcome


@pytest.mark.parametrize(
    ("text", "walls", "found", "strict"),
    [
        ("wall +10%", STEADY, "held", "held"),
        ("wall +10%", SLOWER, "failed", "failed"),
        ("wall +10%", SPREAD, "not sure", "failed"),
        ("throughput -5%", SLOWER, "failed", "failed"),
    ],
)
def test_a_change_fails_by_its_whole_interval_or_strictly_by_its_estimate(
    text, walls, found, strict
):
    assert outcome(text, a_run_of(*STEADY), a_run_of(*walls)) == found
    assert outcome(text, a_run_of(*STEADY), a_run_of(*walls), strict=True) == strict


@pytest.mark.parametrize(
    ("text", "failed", "found"), [("errors +0", 1, "failed"), ("errors +1%", 9, "held")]
)
def test_errors_are_counted_and_need_no_interval(text, failed, found):
    assert (
        outcome(text, a_run_of(1.0), a_run_of(1.0, errors={"reset": failed})) == found
    )


@pytest.mark.parametrize(
    ("text", "found"), [("wall +2%", "not sure"), ("wall +20%", "failed")]
)
def test_a_change_that_is_less_than_runs_may_differ_by_is_not_sure(text, found):
    """However narrow the intervals are: from 1 s, 1.06 s is less than 10 %, and 1.3 s
    is more.
    """
    walls = (1.059, 1.06, 1.061) if found == "not sure" else SLOWER
    (judged,) = judge_changes(
        compare(a_run_of(0.999, 1.0, 1.001), [a_run_of(*walls)]), [parse_change(text)]
    )
    assert judged.outcome == found
    assert ("runs may differ by 10.0 %" in threshold_sentence(judged)) == (
        found == "not sure"
    )


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
    assert (
        outcome("wall +10%", a_run_of(*STEADY), dead)
        == limit_outcome("p99 > 1s", dead)
        == "failed"
    )
    assert outcome("wall +10%", dead, a_run_of(*STEADY)) == "not sure"
    assert (
        limit_outcome("overhead > 1s", LIMITED)
        == outcome("overhead +1%", LIMITED, LIMITED)
        == "not sure"
    )
    assert (
        outcome("p999 +1%", a_run_of(*STEADY), a_run_of(*STEADY, latency_seconds=None))
        == "not sure"
    )


@pytest.mark.parametrize("requests", [0, 1000])
def test_errors_fail_if_a_trial_failed(requests):
    """However many are allowed, and even if the trial sent nothing, unless it was
    repeated in the same round.
    """
    faults = {"requests": requests, "errors": {"connect": requests} if requests else {}}
    run = a_run(
        a_trial("urllib3"),
        *(
            a_failed_trial("urllib3", number=number, **faults)
            for number in (2, 3, 4, 5)
        ),
    )
    changes = judge_changes(
        compare(a_run_of(*STEADY), [run]), [parse_change("errors +90%")]
    )
    for judged in (*changes, *judge_run(run, [parse_threshold("errors > 90%")])):
        assert judged.outcome == "failed"
        assert judged.lost == 4
        assert judged.found == pytest.approx(0.8 if requests else 0.0)
    assert (
        limit_outcome(
            "errors > 0", a_run(a_failed_trial("urllib3"), a_trial("urllib3"))
        )
        == "held"
    )


def test_too_few_rounds_cannot_be_judged_unless_the_estimate_decides():
    assert outcome("wall +10%", a_run_of(*STEADY), a_run_of(2.0, 2.0)) == "not sure"
    assert (
        outcome("wall +10%", a_run_of(*STEADY), a_run_of(2.0, 2.0), strict=True)
        == "failed"
    )
    (judged,) = judge_run(a_run_of(2.0), [parse_threshold("wall > 1s")])
    assert judged.outcome == "not sure"
    assert "it has 1 of at least 3 rounds" in judged.reason
    assert limit_outcome("wall > 1s", a_run_of(2.0), strict=True) == "failed"
    assert limit_outcome("wall > 3s", a_run_of(2.0)) == "held"


@pytest.mark.parametrize(
    ("dropped", "found"),
    [((9, 30, 2, 40), "not sure"), ((9, 30), "not sure"), ((30,) * 4, "failed")],
)
def test_the_share_of_dropped_requests_is_judged_by_its_interval(dropped, found):
    """It is estimated, unlike errors: 1 % more is allowed, and 0.2 % were dropped
    before.
    """
    before, after = (
        a_run(
            *(
                an_open_trial("urllib3", number, dropped=count)
                for number, count in enumerate(counts, 1)
            )
        )
        for counts in ((2,) * len(dropped), dropped)
    )
    assert (
        outcome("dropped +1%", before, after)
        == limit_outcome("dropped > 1%", after)
        == found
    )


def test_a_share_changes_in_points_between_environments():
    """And not by its ratio, which is 10."""
    trials = [
        an_open_trial(
            "urllib3", number, arm=f"urllib3 in {name}", environment=name, dropped=count
        )
        for number in (1, 2, 3, 4)
        for name, count in (("base", 2), ("head", 20))
    ]
    (judged,) = judge_run(
        a_run(*trials, arms=ARMS, environments=SPECS), [parse_threshold("dropped +1%")]
    )
    assert judged.outcome == "failed"
    assert judged.found == pytest.approx(0.018)


@pytest.mark.parametrize("text", ["wall +5%", "errors +0", "p50 +2ms"])
def test_a_baseline_that_failed_is_named_and_not_the_arm_that_is_compared(text):
    trials = [
        a_failed_trial("urllib3", number=number, arm=ARMS[0].name, environment="base")
        for number in (1, 2, 3)
    ]
    trials += [
        a_trial("urllib3", number, arm=ARMS[1].name, environment="head")
        for number in (1, 2, 3)
    ]
    (judged,) = judge_run(
        a_run(*trials, arms=ARMS, environments=SPECS), [parse_threshold(text)]
    )
    assert judged.outcome == "not sure"
    assert exit_code_of([judged]) == 3
    assert "nothing to compare with: urllib3 in base has no " in threshold_sentence(
        judged
    )


def test_a_threshold_that_failed_decides_the_exit_code():
    results = judge_run(
        a_run_of(2.0),
        [parse_threshold(text) for text in ("wall > 1s", "errors > 0", "wall > 3s")],
    )
    assert [exit_code_of(results[:count]) for count in (0, 1)] == [0, 3]
    assert exit_code_of(results[1:]) == 0
    assert (
        exit_code_of(
            [*results, *judge_run(a_run_of(*SLOWER), [parse_threshold("wall > 1s")])]
        )
        == 1
    )
    few = judge_run(
        a_run_of(*SPREAD), [parse_threshold("wall > 1.1s")]
    )  # its interval is on both sides
    assert few[0].outcome == "not sure"
    assert exit_code_of(few) == 0


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
    assert limit_outcome(text, LIMITED, strict=True) == (
        "failed" if found == "not sure" else found
    )


def test_many_arms_at_their_limit_seldom_fail_a_build():
    """In 5 % of the runs, one of eight arms whose typical wall time is the limit may
    fail.
    """
    draw = np.random.default_rng(3)
    wall = parse_threshold("wall > 1s")
    failed = 0
    for _ in range(200):
        run = a_run(
            *(
                a_trial(f"arm {arm}", number, draw.lognormal(0, 0.1))
                for arm in range(8)
                for number in range(1, 6)
            )
        )
        failed += any(one.outcome == "failed" for one in judge_run(run, [wall]))
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
    run = a_run(
        *(
            a_trial(name, number, 1.0 + number / 100)
            for name in ("a", "b: c")
            for number in (1, 2, 3)
        )
    )
    judged = judge_run(
        run, [parse_threshold("b: c: wall > 2s"), parse_threshold("wall > 0.5s")]
    )
    assert [(one.arm, one.outcome) for one in judged] == [
        ("b: c", "held"),
        ("a", "failed"),
        ("b: c", "failed"),
    ]
    changes = judge_changes(compare(run, [run]), [parse_change("a: wall +10%")])
    assert [(one.arm, one.outcome) for one in changes] == [("a", "held")]


def test_what_is_not_sure_says_how_many_rounds_would_decide():
    base, few, close = (
        a_run_of(*(at * np.exp(0.05 * np.resize([-1, 0.3, 1, -0.3], 8))))
        for at in (1.0, 1.05, 1.0201)
    )
    for run, is_close in ((few, False), (close, True)):
        changes = judge_changes(
            compare(base, [run], gated={(None, "wall")}), [parse_change("wall +2%")]
        )
        for judged in (*changes, *judge_run(run, [parse_threshold("wall > 1.02s")])):
            assert judged.outcome == "not sure"
            assert (judged.rounds is None) == is_close
            assert is_close or str(judged.rounds) in threshold_sentence(judged)


def test_what_the_schedule_of_an_open_load_decides_is_no_threshold():
    run = a_run(*(an_open_trial(number=number) for number in (1, 2, 3)))
    with pytest.raises(FieldError, match=r"arm 'urllib3' has an open load.*judge p99"):
        outcome("throughput -5%", run, run)
    assert outcome("p99 +5%", run, run) == "held"


SPECS = {name: EnvironmentSpec(folder=f"/{name}") for name in ("base", "head")}
ARMS = [
    Arm(
        name=f"urllib3 in {name}",
        label=f"urllib3 in {name}",
        strategy="urllib3",
        upstream="aiohttp",
        route="direct",
        workload="workload",
        environment=name,
    )
    for name in SPECS
]


HIDING = ARMS[0].updated(strategy="pyqwest")  # which hides its connections


def in_environments(*factors: float, **of_head):
    """A run in two environments.

    Each factor is the ratio of a round's wall times; the rounds differ widely.
    """
    trials = [
        a_trial(
            "urllib3",
            number,
            level * times,
            arm=f"urllib3 in {name}",
            environment=name,
            **changes,
        )
        for number, (level, factor) in enumerate(
            zip((1.0, 10.0, 2.0, 5.0, 3.0, 7.0), factors, strict=True), start=1
        )
        for name, times, changes in (("base", 1.0, {}), ("head", factor, of_head))
    ]
    return a_run(*trials, arms=ARMS, environments=SPECS)


@pytest.mark.parametrize(
    ("factors", "found", "strict"),
    [
        ((1.10, 1.11, 1.09, 1.10, 1.12, 1.10), "failed", "failed"),
        ((1.04, 1.04, 1.04, 1.04, 1.04, 1.04), "held", "held"),
        ((1.30, 0.95, 1.30, 1.00, 1.40, 1.20), "not sure", "failed"),
    ],
)
@pytest.mark.parametrize("text", ["wall +5%", "throughput -4.7%"])
def test_a_change_between_environments_is_paired_by_round(text, factors, found, strict):
    assert limit_outcome(text, in_environments(*factors)) == found
    assert limit_outcome(text, in_environments(*factors), strict=True) == strict


def test_a_limit_is_for_both_environments_and_a_change_for_the_second():
    limit, change = (parse_threshold(text) for text in ("p99 > 1s", "wall +4%"))
    judged = judge_run(
        in_environments(1.06, 1.07, 1.06, 1.08, 1.055, 1.06), [limit, change]
    )
    assert [(one.threshold, one.arm, one.outcome) for one in judged] == [
        (limit, "urllib3 in base", "held"),
        (limit, "urllib3 in head", "held"),
        (change, "urllib3 in head", "failed"),
    ]


def test_servers_are_compared_like_environments_but_not_by_the_cpu_time_of_clients():
    run = in_environments(*[1.3] * 6)
    arms = [
        arm.updated(environment=None, server=arm.environment)
        for arm in run.experiment.arms
    ]
    plan = run.experiment.updated(arms=arms, environments={})
    trials = [
        with_changes(one, environment=None, server=one.planned.environment)
        for one in run.trials
    ]
    other = run.updated(experiment=plan, trials=trials)
    check_limits([parse_threshold("wall +5%")], plan)
    assert (
        limit_outcome("wall +5%", other) == limit_outcome("wall +5%", run) == "failed"
    )
    (one,) = contrasts_by("environment", run)
    (two,) = contrasts_by("server", other)
    assert one.time == two.time
    assert [" CPU time " in version_answers(each)[0][0] for each in (run, other)] == [
        True,
        False,
    ]


@pytest.mark.parametrize(("short", "found"), [("base", "not sure"), ("head", "failed")])
def test_only_errors_count_of_an_arm_that_was_never_at_its_concurrency(short, found):
    run = in_environments(*[1.3] * 6)
    fewer = {"requests": 5, "concurrency": 32}
    trials = [
        with_changes(one, **fewer) if one.planned.environment == short else one
        for one in run.trials
    ]
    run = run.updated(trials=trials)
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
    assert limit_outcome(text, in_environments(*[1.0] * 6, **of_head)) == found


def with_latencies(*more: float, level: float = 0.01, at_least: tuple[str, ...] = ()):
    """A run in two environments. p50 is about 10 ms in the first one, and longer by
    these seconds in the second one.

    p99 is five times p50.
    """
    trials = []
    for number, longer in enumerate(more, 1):
        base = level * (1 + number / 100)
        for arm, p50, bounds in zip(
            ARMS, (base, base + longer), ((), at_least), strict=True
        ):
            latencies = quantiles(p50, 5 * p50, bounds)
            names = {"arm": arm.name, "environment": arm.environment}
            trials.append(
                a_trial("urllib3", number, latency_seconds=latencies, **names)
            )
    return a_run(*trials, arms=ARMS, environments=SPECS)


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
    (judged,) = judge_run(with_latencies(*more), [parse_threshold(text)])
    assert judged.outcome == found
    assert words in threshold_sentence(judged)
    assert judge_run(with_latencies(*more), [parse_threshold(text)], strict=True)[
        0
    ].outcome == ("failed" if found == "not sure" else found)


@pytest.mark.parametrize(
    ("text", "rounds"), [("p50 +2ms", 2), ("p99 +10ms", 4), ("p999 +2ms", 5)]
)
def test_a_change_in_seconds_without_an_interval_or_a_figure_cannot_be_judged(
    text, rounds
):
    run = with_latencies(*[0.003] * rounds)
    unknown = quantiles().updated(p999=None)
    if text.startswith("p999"):
        trials = [with_changes(trial, latency_seconds=unknown) for trial in run.trials]
        run = run.updated(trials=trials)
    judged = judge_run(run, [parse_threshold(text)])
    assert judged[0].outcome == "not sure"
    assert exit_code_of(judged) == 3


def test_a_change_in_seconds_of_a_lower_bound_fails_and_two_runs_have_none():
    run = with_latencies(*[0.001] * 5, at_least=("p99",))
    (judged,) = judge_run(run, [parse_threshold("p99 +10ms")])
    assert judged.outcome == "failed"
    assert judged.at_least
    with pytest.raises(FieldError, match="only servers or environments of one run"):
        parse_change("p50 +2ms")
    check_limits(
        [parse_threshold("p99 +10ms")],
        run.experiment.updated(rounds=3, budget=60.0),
    )
    with pytest.raises(FieldError, match="no earlier environment or server"):
        check_limits([parse_threshold("p50 +2ms")], a_run_of(*STEADY).experiment)


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        ("wall +5%", {"arms": ARMS[:1]}),  # nothing to compare with
        ("urllib3 in base: wall +5%", {}),
        ("wall +5%", {"rounds": 2}),  # no interval
        ("p99 +5ms", {"rounds": 4}),  # one of p99 needs five
        (
            "throughput -5%",
            {"workloads": {"workload": make_workload(rate=50.0)}},
        ),  # the schedule decides it
        ("late_p99 > 5ms", {}),  # only an open load has it
        (
            "p999 > 1s",
            {"workloads": {"workload": make_workload(requests=50)}},
        ),  # it needs a thousand requests
        ("connections > 1", {"arms": [HIDING]}),
    ],
)
def test_a_threshold_that_no_run_could_be_judged_by_is_refused_before_the_run(
    text, changes
):
    plan = in_environments(*[1.0] * 6).experiment.updated(**changes)
    with pytest.raises(FieldError) as caught:
        check_limits([parse_threshold(text)], plan)
    assert repr(text) in str(caught.value)
