"""The chart of times as data: bars, scales, and which arms share a chart."""

from __future__ import annotations

import pytest

from clientlab.reports.charts import bars
from clientlab.reports.rows import groups_of
from clientlab.results.plan import Arm
from clientlab.workload.workload import Workload
from clients.documents import a_run, a_trial

RUN = a_run(
    *(a_trial("urllib3", number, wall) for number, wall in enumerate((1.0, 1.1, 0.9), start=1)),
    *(a_trial("pycurl", number, wall, errors={"reset": 2}) for number, wall in enumerate((3.0, 3.3, 2.7), start=1)),
    *(a_trial("urllib3", number, 2.0, route="proxy") for number in (1, 2, 3)),
)


def charts(run) -> list:
    """The charts of a run."""
    return bars.times(run, groups_of(run))


def an_arm(name: str, workload: str = "workload", route: str = "direct", **axes) -> Arm:
    """An arm on a route."""
    return Arm(name=name, label=name, strategy="urllib3", upstream="aiohttp", route=route, workload=workload, axes=axes)


def trials_of(*arms: Arm, wall: float = 1.0, **changes) -> list:
    """Three rounds of each arm; the second arm takes twice as long as the first, and so on."""
    return [
        a_trial("urllib3", number, wall * place, arm=arm.name, workload=arm.workload, route=arm.route, **changes)
        for place, arm in enumerate(arms, start=1)
        for number in (1, 2, 3)
    ]


def names(chart) -> list[str]:
    """The names of the rows."""
    return [row.name for row in chart.rows]


def test_a_bar_is_as_long_as_the_typical_time_with_its_value_beside_it():
    """In time for as many requests as each trial made; every round is a dot."""
    direct, proxied = charts(RUN)
    assert direct.title == "workload · aiohttp upstream · direct"
    assert direct.axis == "time for 1,000 requests, c=1; shorter is better"
    assert [(row.name, row.value) for row in direct.rows] == [("urllib3", "1.00 s"), ("pycurl", "3.01 s ⚠ errors")]
    assert direct.rows[1].length / direct.rows[0].length == pytest.approx(3.0 / 998 * 1000)
    assert [len(row.dots) for row in direct.rows] == [3, 3]
    assert direct.notes == ["Requests failed with pycurl: look at the errors before the speed."]
    assert proxied.rows[0].length / direct.rows[0].length == pytest.approx(2.0)


def test_charts_of_one_workload_have_one_scale():
    """So that direct and proxied can be compared by eye; all rounds are inside."""
    direct, proxied = charts(RUN)
    assert direct.ticks == proxied.ticks
    assert max(place for row in direct.rows for place in row.dots) < 100


def test_values_far_apart_are_dots_on_a_logarithmic_axis_that_says_so():
    """A bar of 58 s would make bars of 1 s and 2 s look alike. Medians and intervals stay."""
    walls = {"urllib3": 1.0, "pycurl": 2.0, "httpx": 58.0}
    (chart,) = charts(a_run(*(a_trial(name, number, wall * (1 + number / 100))
                              for name, wall in walls.items() for number in (1, 2, 3))))  # fmt: skip
    assert chart.axis == "time for 1,000 requests, c=1 (logarithmic); further left is better"
    assert chart.notes[0] == bars.LOGARITHMIC
    assert [tick.text for tick in chart.ticks] == ["1 s", "3 s", "10 s", "30 s"]
    assert [(row.value, row.length) for row in chart.rows] == [("1.02 s", None), ("2.04 s", None), ("59.2 s", None)]
    (first, second, last) = (row.dots[1] for row in chart.rows)
    assert second - first > 10
    assert 0 < first < last < 100
    assert all(row.span[0] < row.dots[1] < row.span[1] for row in chart.rows)


def test_a_value_less_than_twenty_times_another_keeps_its_bar():
    """From 0 on, so that lengths can be compared."""
    (chart,) = charts(a_run(a_trial("urllib3", 1, 1.0), a_trial("pycurl", 1, 19.0)))
    assert chart.axis.endswith("; shorter is better")
    assert chart.rows[1].length / chart.rows[0].length == pytest.approx(19.0)


def test_a_row_in_words_has_the_interval_and_all_rounds():
    """For a pointer or a screen reader."""
    assert charts(RUN)[0].rows[0].title == (
        "urllib3: 1.00 s over 3 rounds (1.00 s, 1.10 s, 900 ms); 95 % confidence interval 777 ms to 1.28 s"
    )


def test_fewer_than_three_rounds_have_no_interval():
    """Neither as a line nor in words."""
    (chart,) = charts(a_run(a_trial(), a_trial(number=2)))
    assert chart.rows[0].span is None
    assert "interval" not in chart.rows[0].title


def test_arms_of_their_own_names_share_a_chart_the_fastest_first():
    """Though their routes differ: an experiment names arms to compare them."""
    arms = [an_arm("plain"), an_arm("proxied", route="proxy")]
    (chart,) = charts(a_run(*reversed(trials_of(*arms)), arms=arms))
    assert (chart.title, names(chart)) == ("workload", ["plain", "proxied"])
    assert [row.first for row in chart.rows] == [True, False]


def test_an_arm_with_errors_is_not_marked_as_the_fastest():
    """However fast it failed; in a chart of several routes as well."""
    arms = [an_arm("hasty"), an_arm("sound"), an_arm("proxied", route="proxy")]
    hasty = trials_of(arms[0], wall=0.1, errors={"reset": 5})
    (chart,) = charts(a_run(*hasty, *trials_of(*arms[1:]), arms=arms))
    assert [(row.name, row.first) for row in chart.rows] == [("hasty", False), ("sound", True), ("proxied", False)]


def test_unlike_concurrency_is_shown_with_each_name():
    """Concurrency is shown with each name if arms differ in it, and otherwise once at the axis."""
    arms = [an_arm("one"), an_arm("many")]
    trials = [*trials_of(arms[0]), *trials_of(arms[1], concurrency=50)]
    (chart,) = charts(a_run(*trials, arms=arms))
    assert sorted(names(chart)) == ["many (c=50)", "one (c=1)"]
    assert chart.axis == "time for 1,000 requests; shorter is better"


def test_arms_of_equal_concurrency_stand_together():
    """Also where their routes differ, so that like is beside like."""
    arms = [an_arm("narrow"), an_arm("wide", route="proxy"), an_arm("narrower", route="proxy"), an_arm("wider")]
    flights = {"wide": 50, "wider": 50}
    trials = [trial.model_copy(update={"concurrency": flights.get(trial.arm, 1)}) for trial in trials_of(*arms)]
    (chart,) = charts(a_run(*trials, arms=arms))
    assert names(chart) == ["narrow (c=1)", "narrower (c=1)", "wide (c=50)", "wider (c=50)"]


def test_each_workload_has_a_scale_of_its_own():
    """In time for its own number of requests."""
    arms = [an_arm("few", "few"), an_arm("many", "many")]
    workloads = {"few": Workload(requests=10), "many": Workload(requests=1000)}
    few, many = charts(a_run(*trials_of(*arms, wall=5.0), arms=arms, workloads=workloads))
    assert few.ticks != many.ticks
    assert [chart.axis.split(",")[0] for chart in (few, many)] == ["time for 10 requests", "time for 1"]


def test_arms_on_a_curve_have_no_bar():
    """Arms of a sweep are drawn in the sweep's chart and not as bars."""
    arms = [an_arm(f"c={place}", c=place) for place in (1, 2, 4)]
    assert charts(a_run(*trials_of(*arms), arms=arms)) == []


def test_arms_along_an_axis_of_two_values_have_bars_beside_a_sweep():
    """Two values make no curve, and an arm that is on none would be in no chart."""
    swept = [an_arm(f"c={place}", c=place) for place in (1, 2, 4)]
    pair = [an_arm(f"read={how}", "other", read=how) for how in ("whole", "chunks")]
    (chart,) = charts(a_run(*trials_of(*swept, *pair), arms=[*swept, *pair]))
    assert names(chart) == ["read=whole", "read=chunks"]


def test_a_sweep_beside_other_arms_of_its_workload_has_bars_as_well():
    """They are there to be compared with the other arm."""
    arms = [an_arm(f"c={place}", c=place) for place in (1, 2, 4)] + [an_arm("other")]
    (chart,) = charts(a_run(*trials_of(*arms), arms=arms))
    assert len(chart.rows) == 4
