"""Open loads in reports: what arms are ranked by, which columns they have, and what the report explains."""

from __future__ import annotations

import pytest

from clientlab.errors import FieldError
from clientlab.experiments.claim_tables import planned_claims
from clientlab.experiments.experiment import ClaimTable
from clientlab.judging.cautions import cautions_of
from clientlab.judging.ranking import ranked
from clientlab.judging.verdict import of_schedule
from clientlab.reports.figure_tables import FASTEST, LEAST_P99, figures
from clientlab.reports.headline import answers
from clientlab.reports.rows import groups_of
from clientlab.reports.sections import Report
from clientlab.workload.arrivals import Stages
from clientlab.workload.workload import Workload
from clients.documents import a_run, an_open_trial
from clients.reports.test_table import columns

OPEN = Workload(rate=200, duration=5.0)


def rounds(strategy: str, p99: float, **changes) -> list:
    return [an_open_trial(strategy, number, p99 * (1 + number / 1000), **changes) for number in (1, 2, 3)]


def run_of(*trials):
    return a_run(*trials, workloads={"workload": OPEN})


def test_arms_are_ranked_by_p99_from_the_planned_start_and_not_by_wall_time():
    """The schedule decides the wall time: the one that took longer here waited less for each request."""
    run = run_of(*rounds("quick", 0.010, wall=5.1), *rounds("slow", 0.030, wall=5.0))
    ((_, rows),) = ranked(run).items()
    assert [(row.name, round(row.ratio.value, 3)) for row in rows] == [("quick", 1.0), ("slow", 3.0)]
    (answer,) = answers(groups_of(run))
    assert answer.startswith("quick had a p99 of 10.0 ms from the planned start; that of slow is 3.00")
    found = columns(run)
    assert found["x least p99 (95 %)"][0] == "1"
    assert found["x least p99 (95 %)"][1].startswith("3.00")
    assert not any(head.startswith("x fastest") for head in found)
    (note,) = figures(Report(run)).notes
    assert LEAST_P99 in note
    assert FASTEST not in note


def test_an_arm_that_dropped_so_much_that_p99_is_a_bound_is_last_and_has_no_ratio():
    """Its p99 is "at least": it may be any number of times as long."""
    bounded = rounds("shedding", 0.001, dropped=100, errors={"dropped": 100}, at_least=["p99", "p999", "max", "mean"])
    run = run_of(*bounded, *rounds("quick", 0.010), *rounds("slow", 0.030))
    found = columns(run)
    assert found["strategy"] == ["quick", "slow", "shedding"]
    assert found["x least p99 (95 %)"][2] == "–"
    assert found["p99"][2] == "≥ 1.00 ms"
    assert found["dropped"] == ["0", "0", "10.0 %"]
    assert found["bottleneck"] == ["none, on schedule", "none, on schedule", "behind schedule"]
    (answer,) = answers(groups_of(run))
    assert answer.endswith("were dropped that p99 is only a lower bound: shedding (≥ 1.00 ms).")


def test_schedules_of_equal_rate_are_not_compared_if_their_stages_differ():
    """A burst is no steady load, though both have as many requests."""
    stages = ("0s:100/s,2.5s:300/s", "0s:300/s,2.5s:100/s")
    workloads = {f"w{place}": Workload(stages=Stages.parse(text), duration=5.0) for place, text in enumerate(stages)}
    trials = [one for place, name in enumerate(workloads) for one in rounds(f"urllib3[{place}]", 0.01, workload=name)]
    run = a_run(*trials, workloads=workloads)
    arms = [arm.model_copy(update={"group": "w", "label": arm.name}) for arm in run.experiment.arms]
    run = run.model_copy(update={"experiment": run.experiment.model_copy(update={"arms": arms})})
    assert columns(run)["x least p99 of c (95 %)"] == ["–", "–"]
    (answer,) = answers(groups_of(run))
    assert answer.startswith(f"With {stages[0]}, urllib3[0] had a p99")


def test_a_strategy_that_sends_too_little_or_drops_is_behind_schedule():
    """And its verdict never is that delays limited it."""
    assert of_schedule(planned_per_second=200, achieved_per_second=199, dropped=0) == "on-schedule"
    assert of_schedule(planned_per_second=200, achieved_per_second=197, dropped=0) == "behind-schedule"
    assert of_schedule(planned_per_second=200, achieved_per_second=200, dropped=1) == "behind-schedule"
    run = run_of(*rounds("slow", 2.0, achieved_per_second=150.0))
    (caution,) = [one for one in cautions_of(run) if one.kind == "overloaded"]
    assert "slow: sent 150 of 200 requests/s" in caution.text


def test_a_claim_about_what_the_schedule_decides_is_refused():
    run = run_of(*rounds("quick", 0.010), *rounds("slow", 0.030))
    table = ClaimTable(text="quick is faster", kind="less", figure="wall_seconds", a="quick", b="slow")
    with pytest.raises(FieldError, match=r"arm .quick.*p99"):
        planned_claims({"it": table}, run.experiment.arms, {"workload": OPEN})
    good = ClaimTable(text="quick is faster", kind="less", figure="p99", a="quick", b="slow")
    assert planned_claims({"it": good}, run.experiment.arms, {"workload": OPEN})
