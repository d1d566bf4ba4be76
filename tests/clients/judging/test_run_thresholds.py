"""Thresholds of a run with environments: changes are paired by round, and hold together with limits."""

from __future__ import annotations

import pytest

from clientlab.errors import FieldError
from clientlab.judging.contrasts import contrasts, environment_pairs
from clientlab.judging.run_thresholds import check_limits, judge_run, threshold_of_run
from clientlab.results.plan import Arm, EnvironmentSpec
from clientlab.workload.workload import Workload
from clients.documents import a_run, a_trial, quantiles

SPECS = {name: EnvironmentSpec(folder=f"/{name}") for name in ("base", "head")}
ARMS = [
    Arm(name=f"urllib3 in {name}", label=f"urllib3 in {name}", strategy="urllib3", upstream="aiohttp", route="direct",
        workload="workload", environment=name)
    for name in SPECS
]  # fmt: skip
LEVELS = (1.0, 10.0, 2.0, 5.0, 3.0, 7.0)
"""Rounds differ by a factor of ten, as on a machine that others share."""


def compared(*factors: float, **of_head):
    """A run of six rounds in two environments: each factor is the ratio of wall times of one round."""
    trials = []
    for number, (level, factor) in enumerate(zip(LEVELS, factors, strict=False), start=1):
        for name, times, changes in (("base", 1.0, {}), ("head", factor, of_head)):
            own = {"arm": f"urllib3 in {name}", "environment": name, **changes}
            trials.append(a_trial("urllib3", number, level * times, **own))
    return a_run(*trials, arms=ARMS, environments=SPECS)


@pytest.mark.parametrize(
    ("factors", "found", "strict"),
    [
        ((1.10, 1.11, 1.09, 1.10, 1.12, 1.10), "failed", "failed"),
        ((1.04, 1.04, 1.04, 1.04, 1.04, 1.04), "held", "held"),
        ((1.30, 0.95, 1.30, 1.00, 1.40, 1.20), "not sure", "failed"),
        ((0.90, 0.90, 0.90, 0.90, 0.90, 0.90), "held", "held"),
    ],
)
@pytest.mark.parametrize("text", ["wall +5%", "throughput -4.7%"])
def test_a_regression_fails_where_its_whole_interval_is_beyond_the_threshold(text, factors, found, strict):
    """The noise of the rounds is equal in both environments, so it does not count."""
    for judged, outcome in ((False, found), (True, strict)):
        (result,) = judge_run(compared(*factors), [threshold_of_run(text)], strict=judged)
        assert (result.arm, result.outcome) == ("urllib3 in head", outcome)


def test_a_change_is_judged_by_the_interval_that_the_report_shows():
    """A limit is for both environments, a change for the second."""
    run = compared(1.06, 1.07, 1.06, 1.08, 1.055, 1.06)
    *limits, change = judge_run(run, [threshold_of_run(text) for text in ("p99 > 1s", "wall +4%")])
    assert [(one.arm, one.outcome) for one in limits] == [("urllib3 in base", "held"), ("urllib3 in head", "held")]
    (shown,) = contrasts(run, environment_pairs(run.experiment.arms))
    assert change.outcome == "failed"
    assert (change.found, *change.interval) == pytest.approx((shown.time.value, *shown.time.interval))


@pytest.mark.parametrize(
    ("text", "of_head", "found"),
    [
        ("errors +0", {}, "held"),
        ("errors +0", {"errors": {"reset": 1}}, "failed"),
        ("connections +0", {"connections_opened": 2}, "failed"),
        ("p99 +5%", {"latency_seconds": quantiles(p99=0.004, at_least=["p99"]), "errors": {"reset": 20}}, "failed"),
    ],
)
def test_errors_are_counted_and_a_lower_bound_is_no_pass(text, of_head, found):
    """One failed request more is one more. Nobody knows how much larger a lower bound is."""
    (result,) = judge_run(compared(*[1.0] * 6, **of_head), [threshold_of_run(text)])
    assert result.outcome == found


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        ("wall +5%", {"arms": ARMS[:1]}),  # nothing to compare with
        ("urllib3 in base: wall +5%", {}),
        ("wall +5%", {"rounds": 2}),  # no interval
        ("throughput -5%", {"workloads": {"workload": Workload(rate=50.0)}}),  # the schedule decides it
        ("wall -5%", {}),  # the good direction
        ("wall +5", {}),  # not in percent
    ],
)
def test_a_change_that_no_run_could_show_is_refused_before_the_run(text, changes):
    """In a line that quotes the threshold."""
    plan = compared(*[1.0] * 6).experiment.model_copy(update=changes)
    with pytest.raises(FieldError) as caught:
        check_limits([threshold_of_run(text)], plan)
    assert repr(text) in str(caught.value)
