"""Open loads in reports: what arms are ranked by, which columns they have, and what the report explains."""

from __future__ import annotations

import pytest

from clientlab.errors import FieldError
from clientlab.experiments.claim_tables import planned_claims
from clientlab.experiments.experiment import ClaimTable
from clientlab.judging.cautions import cautions_of
from clientlab.judging.ranking import ranked
from clientlab.judging.verdict import of_schedule
from clientlab.reports import as_csv, as_html
from clientlab.reports.charts import bars, sweeps
from clientlab.reports.figure_tables import FASTEST, LEAST_P99, figure_table, figures
from clientlab.reports.headline import answers
from clientlab.reports.rows import groups_of
from clientlab.reports.sections import Report
from clientlab.results.plan import Arm
from clientlab.results.trial import LoadSlice, Slice
from clientlab.workload.arrivals import Stages
from clientlab.workload.workload import Workload
from clients.documents import a_run, a_trial, an_open_trial

OPEN = Workload(rate=200, duration=5.0)


def rounds(strategy: str, p99: float, **changes) -> list:
    """Three rounds."""
    return [an_open_trial(strategy, number, p99 * (1 + number / 1000), **changes) for number in (1, 2, 3)]


def run_of(*trials):
    """A run whose workload is an open load."""
    return a_run(*trials, workloads={"workload": OPEN})


def columns(run) -> dict[str, list[str]]:
    """Heading → cells of the only table of a run."""
    (group,) = groups_of(run)
    table = figure_table(group)
    heads, rows = table.headings, table.rows
    return dict(zip(heads, map(list, zip(*rows, strict=True)), strict=True))


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


def test_arms_of_unlike_rates_are_not_compared():
    """As arms of unlike concurrency are not."""
    run = run_of(*rounds("calm", 0.002), *rounds("busy", 0.020, planned_per_second=400.0, achieved_per_second=400.0))
    assert columns(run)["x least p99 of c (95 %)"] == ["–", "–"]
    (answer,) = answers(groups_of(run))
    assert answer.startswith("With 200/s, calm had a p99 of 2.00 ms")


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


def test_along_a_rate_there_is_no_knee_and_an_open_load_is_no_point_of_a_closed_one():
    """The least rate is the easiest. Seconds of an open load are a p99, those of a closed one a total."""
    rates, counts = (50.0, 100.0, 200.0), (1, 2, 4)
    way = {"strategy": "urllib3", "upstream": "aiohttp", "route": "direct"}
    workloads = {f"r{rate:g}": Workload(rate=rate, duration=5.0) for rate in rates}
    workloads |= {f"c{count}": Workload(requests=1000, concurrency=count) for count in counts}
    arms = [Arm(name=f"r{rate:g}", workload=f"r{rate:g}", axes={"rate": rate}, **way) for rate in rates]
    arms += [Arm(name=f"c{count}", workload=f"c{count}", axes={"rate": count}, **way) for count in counts]
    trials = [an_open_trial("urllib3", n, rate / 1e4 + n * 1e-4, arm=f"r{rate:g}", workload=f"r{rate:g}")
              for rate in rates for n in (1, 2, 3)]  # fmt: skip
    trials += [a_trial("urllib3", n, 8.0 / count, arm=f"c{count}", workload=f"c{count}")
               for count in counts for n in (1, 2, 3)]  # fmt: skip
    scheduled, closed = sweeps.charts(a_run(*trials, arms=arms, workloads=workloads))
    assert (scheduled.y_axis, closed.y_axis) == (
        "99th percentile of latency, from the planned start", "time for 1,000 requests"
    )  # fmt: skip
    (line,) = scheduled.lines
    assert (line.name, line.ring, len(line.points)) == ("urllib3", None, 3)
    assert scheduled.summary == "urllib3: 5.20 ms at 50.0, 20.2 ms at 200.0."
    assert "knee" not in "".join(scheduled.notes)


def test_both_latencies_are_explained_where_they_differ_much():
    """In one sentence, with both; and not where a timer alone makes the difference."""
    late = run_of(*rounds("late", 0.900, sent=0.004), *rounds("prompt", 0.0042))
    (caution,) = [one for one in cautions_of(late) if one.kind == "late-starts"]
    assert caution.arms == ["late"]
    assert "waited for a free one before they were sent: late 902 ms and 4.00 ms" in caution.text
    busy = run_of(*rounds("late", 0.900, concurrency=5))
    assert "although places were free" in next(one.text for one in cautions_of(busy) if one.kind == "late-starts")
    assert {"p99", "p99 sent", "late p50", "late p99", "planned/s", "achieved/s", "backlog"} <= set(columns(late))


def test_a_strategy_that_sends_too_little_or_drops_is_behind_schedule():
    """And its verdict never is that delays limited it."""
    assert of_schedule(planned_per_second=200, achieved_per_second=199, dropped=0) == "on-schedule"
    assert of_schedule(planned_per_second=200, achieved_per_second=197, dropped=0) == "behind-schedule"
    assert of_schedule(planned_per_second=200, achieved_per_second=200, dropped=1) == "behind-schedule"
    run = run_of(*rounds("slow", 2.0, achieved_per_second=150.0))
    (caution,) = [one for one in cautions_of(run) if one.kind == "behind-schedule"]
    assert "slow sent 150 of 200 requests/s" in caution.text


def test_the_page_draws_the_backlog_over_time():
    """A chart beside throughput and latency, for open loads alone."""
    parts = [LoadSlice(at=0.0, planned=50, sent=40, dropped=0, backlog=10)]
    parts.append(LoadSlice(at=2.5, planned=50, sent=40, dropped=0, backlog=20))
    slices = [Slice(at=at, requests=500, errors=0, p50=0.002, p99=0.009) for at in (0.0, 2.5)]
    drawn = as_html.render(run_of(an_open_trial("late", load_over_time=parts, over_time=slices)))
    assert "late: a backlog of up to 20 requests." in drawn
    assert "backlog of up to" not in as_html.render(a_run(a_trial(over_time=slices)))


def test_charts_show_p99_in_place_of_a_time_that_the_schedule_decides():
    """Bars and page; the CSV has all figures of the schedule."""
    run = run_of(*rounds("quick", 0.010), *rounds("slow", 0.030))
    (chart,) = bars.times(run, groups_of(run))
    assert chart.axis == "99th percentile of latency, from the planned start, c=1; shorter is better"
    assert [row.value for row in chart.rows] == ["10.0 ms", "30.1 ms"]
    assert "x least p99 is the typical ratio" in as_html.render(run)
    assert "lateness_p99_seconds" in as_csv.render(run).splitlines()[0]


@pytest.mark.parametrize("figure", ["wall_seconds", "requests_per_second"])
def test_a_claim_about_what_the_schedule_decides_is_refused(figure):
    """Such a claim would be settled by the plan."""
    run = run_of(*rounds("quick", 0.010), *rounds("slow", 0.030))
    table = ClaimTable(text="quick is faster", kind="less", figure=figure, a="quick", b="slow")
    with pytest.raises(FieldError, match=r"the schedule of arm 'quick' decides it.*compare p99"):
        planned_claims({"it": table}, run.experiment.arms, {"workload": OPEN})
    good = ClaimTable(text="quick is faster", kind="less", figure="p99", a="quick", b="slow")
    assert planned_claims({"it": good}, run.experiment.arms, {"workload": OPEN})
