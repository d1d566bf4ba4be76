"""The sweep of the report: curves along an axis, their knee and their intervals."""

from __future__ import annotations

import pytest

from clientlab.reports.charts import sweeps
from clientlab.results.plan import Arm
from clientlab.workload.workload import Workload
from clients.documents import a_run, a_trial


def swept(
    walls: dict, strategy: str = "urllib3", rounds: int = 3, step: float = 0.001, **axes
) -> tuple[list[Arm], list]:
    """Arms along the axis "c" and their trials: place → wall seconds."""
    way = {"strategy": strategy, "upstream": "aiohttp", "route": "direct", "workload": "workload"}
    arms = [Arm(name=f"{strategy}{place}{axes}", axes={"c": place, **axes}, **way) for place in walls]
    trials = [
        a_trial(strategy, number, wall + number * step, arm=arm.name)
        for arm, wall in zip(arms, walls.values(), strict=True)
        for number in range(1, rounds + 1)
    ]
    return arms, trials


def plots(*swept_arms):
    """The plots of a run with these sweeps."""
    arms = [arm for some, _ in swept_arms for arm in some]
    trials = [trial for _, some in swept_arms for trial in some]
    return sweeps.charts(a_run(*trials, arms=arms, workloads={"workload": Workload(requests=1000)}))


@pytest.mark.parametrize(
    ("walls", "knee"),
    [
        ({1: 8.0, 2: 4.0, 4: 2.0, 8: 1.0, 16: 2.0}, 8),
        ({1: 8.0, 2: 4.0, 4: 1.02, 8: 1.0, 16: 1.01}, 4),
        ({16: 1.0, 1: 1.0, 4: 1.0}, 1),
        ({1: 8.0, 2: 4.0, 4: 2.0}, 4),
    ],
)
def test_the_knee_is_the_first_place_nearly_as_good_as_the_best(walls, knee):
    """Within 5 % of it; places are taken by size, however they were written."""
    (plot,) = plots(swept(walls))
    assert [line.name for line in plot.lines] == [f"urllib3: knee at {knee}"]
    assert plot.lines[0].ring


def test_a_curve_has_the_interval_of_its_rounds():
    """As a band and in the table; fewer than three rounds have none."""
    (plot,) = plots(swept({1: 2.0, 2: 1.0, 4: 1.5}, step=0.1))
    assert plot.lines[0].band
    assert plot.table.headings == ["c", "urllib3"]
    assert plot.table.rows[1] == ["2", "1.20 s (973 ms to 1.47 s)"]
    (plot,) = plots(swept({1: 2.0, 2: 1.0, 4: 1.5}, rounds=2))
    assert plot.lines[0].band == []
    assert plot.table.rows[1] == ["2", "1.00 s"]


def test_arms_that_differ_in_another_axis_have_a_curve_of_their_own():
    """Named by it; two places of that other axis make no sweep."""
    walls = {1: 2.0, 2: 1.0, 4: 1.5}
    (plot,) = plots(swept(walls, pool=1), swept(walls, pool=8), swept(walls, "pycurl"))
    assert [line.name.split(":")[0] for line in plot.lines] == ["urllib3, pool=1", "urllib3, pool=8", "pycurl"]
    assert len({line.look for line in plot.lines}) == 3
    assert len({line.look.colour for line in plot.lines[:2]}) == 1


def test_a_named_sweep_along_two_axes_has_a_curve_for_each_place_of_the_other():
    """Else one curve would go back and forth."""
    walls = {1: 2.0, 2: 1.0, 4: 1.5}
    named = [
        ([arm.model_copy(update={"sweep": "both"}) for arm in arms], trials)
        for arms, trials in (swept(walls, pool=1), swept(walls, pool=8))
    ]
    (plot,) = plots(*named)
    assert [line.name.split(":")[0] for line in plot.lines] == ["both, pool=1", "both, pool=8"]


def test_the_seconds_are_for_the_requests_of_its_own_workload():
    """Whatever other workloads of the run have."""
    arms, trials = swept({1: 2.0, 2: 1.0, 4: 1.5})
    workloads = {"workload": Workload(requests=1000), "other": Workload(requests=7)}
    (plot,) = sweeps.charts(a_run(*trials, arms=arms, workloads=workloads))
    assert plot.y_axis == "time for 1,000 requests"


def test_settings_that_are_an_axis_make_one_curve():
    """Though each makes a strategy of its own name; other settings stay in the curve's name."""
    arms, trials = swept({1: 2.0, 2: 1.0, 4: 1.5})
    arms = [arm.model_copy(update={"strategy": f"urllib3?a=b&c={arm.axes['c']}"}) for arm in arms]
    strategies = {arm.name: arm.strategy for arm in arms}
    trials = [trial.model_copy(update={"strategy": strategies[trial.arm]}) for trial in trials]
    (plot,) = plots((arms, trials))
    assert [line.name for line in plot.lines] == ["urllib3?a=b: knee at 2"]


def test_places_that_are_words_stand_in_the_order_written():
    """Axis values that are words are drawn in the order written, at even distances."""
    (plot,) = plots(swept({"small": 2.0, "medium": 1.0, "large": 1.5}))
    assert [tick.text for tick in plot.x_ticks] == ["small", "medium", "large"]
    first, second, third = (tick.position for tick in plot.x_ticks)
    assert second - first == pytest.approx(third - second)


def test_a_place_whose_trials_failed_is_left_out():
    """With fewer than three places left there is no curve."""
    arms, trials = swept({1: 2.0, 2: 1.0, 4: 1.5})
    broken = [trial.model_copy(update={"status": "failed"}) for trial in trials[:3]]
    assert plots((arms, [*broken, *trials[3:]])) == []
