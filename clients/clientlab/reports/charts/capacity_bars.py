"""Bars of capacities: how many requests per second each arm held, by the search of a run. The largest is first."""

from __future__ import annotations

from collections.abc import Sequence

from clientlab import units
from clientlab.analysis.standings import GroupKey
from clientlab.judging.capacity import ArmCapacity, capacities
from clientlab.reports.charts.bars import LOGARITHMIC, beyond, scale_of
from clientlab.reports.charts.chart_data import Look, looks_of
from clientlab.reports.charts.shapes import Bar, BarChart, Scale
from clientlab.results.capacity_search import CapacitySearch
from clientlab.results.document import Run

NOTE = (
    "The bar is the median of the rounds' capacities, the line on it its 95 % confidence interval, a dot the capacity "
    "of one round. The largest is in bold."
)


def charts(run: Run) -> list[BarChart]:
    """A chart for each group of arms of which one has a capacity; none for a run without a search."""
    search, looks = run.experiment.find_max, looks_of(run)
    if search is None:
        return []
    groups = {group: [one for one in arms if one.by_round] for group, arms in capacities(run).items()}
    return [_chart(title_of(group, search), arms, looks) for group, arms in groups.items() if arms]


def title_of(group: GroupKey, search: CapacitySearch) -> str:
    """The conditions of the search, and the group."""
    return f"Capacity with {search.conditions}: {group.title}"


def _chart(title: str, arms: Sequence[ArmCapacity], looks: dict[str, Look]) -> BarChart:
    intervals = {one.name: _ends(one) for one in arms}
    scale = scale_of(
        [rate for one in arms for rate in one.by_round.values()], [end for ends in intervals.values() for end in ends]
    )
    better = " (logarithmic); further right is better" if scale.log else "; longer is better"
    return BarChart(
        title=title,
        rows=[_bar(one, scale, looks[one.arm.strategy]) for one in arms],
        ticks=scale.ticks_across(lambda rate: f"{units.rate(rate)}/s"),
        axis=f"requests per second that were held{better}",
        notes=[*([LOGARITHMIC] if scale.log else []), *beyond(scale, intervals)],
    )


def _bar(one: ArmCapacity, scale: Scale, look: Look) -> Bar:
    rates, ends = list(one.by_round.values()), _ends(one)
    middle = one.typical.value if one.typical is not None else max(rates)
    value = f"{units.AT_LEAST if one.at_least else ''}{units.rate(middle)}/s"
    title = (
        f"{one.name}: median {value} of {len(rates)} rounds ({', '.join(f'{units.rate(rate)}/s' for rate in rates)})"
    )
    if ends:
        title += f"; 95 % confidence interval {' to '.join(f'{units.rate(end)}/s' for end in ends)}"
    return Bar(
        name=one.name,
        look=look,
        value=value,
        title=title,
        length=None if scale.log else scale.position(middle),
        span=(scale.position(ends[0]), scale.position(ends[1])) if ends else None,
        dots=[scale.position(rate) for rate in rates],
        first=one.standing is not None and one.standing.fastest,
    )


def _ends(one: ArmCapacity) -> list[float]:
    """Both ends of the interval of the capacity; empty without one."""
    return list((one.typical and one.typical.interval) or ())
