"""What a search for capacities found, and what overloads did to the arms: tables, and the answer in a sentence."""

from __future__ import annotations

from collections.abc import Sequence

from clientlab import units
from clientlab.analysis.decisions import EQUAL_SHARE, decision_of
from clientlab.analysis.ratios import Estimate
from clientlab.judging.capacity import ArmCapacity, ArmSearch, capacities, equal_load, rate_of, why_not_held
from clientlab.judging.overload import CALM_AFTER, COLLAPSED, RECOVERED, Overloaded, overloads_of
from clientlab.judging.verdict import FULL
from clientlab.reports.charts import capacity_bars
from clientlab.reports.charts.capacity_bars import title_of
from clientlab.reports.charts.shapes import DataTable
from clientlab.reports.rows import bottleneck_shares
from clientlab.reports.sections import Charts, Part, Report, Section, Tables
from clientlab.results.bottleneck import Bound
from clientlab.results.capacity_search import CapacitySearch
from clientlab.results.document import Run
from clientlab.results.figures import BY_KEY
from clientlab.results.trial import Trial

_CAPACITY_HEADS = (
    "arm", "capacity/s (95 %)", "x largest (95 %)", "rounds", "probes", "not held at", "because", "busy then",
)  # fmt: skip
_CAPACITY_TEXTS = (6, 7)
_CAPACITY_BRIEF = (1, 2, 5, 6, 3)
_OVERLOAD_HEADS = (
    "arm", "overload", "rate/s", "goodput/s", "of capacity", "late p99", "p99", "failed", "recovery", "what it does",
)  # fmt: skip
_OVERLOAD_TEXTS = (9,)
_OVERLOAD_BRIEF = (9, 3, 4, 8, 7, 5)


def capacity(report: Report) -> Section[Part]:
    """The capacities that a search found: a chart and a table for each group."""
    search = report.run.experiment.find_max
    if search is None:
        return Section("capacity", "Capacity", [])
    tables = [
        DataTable(
            _CAPACITY_HEADS,
            [_row(one, arms) for one in arms],
            title_of(group, search),
            texts=_CAPACITY_TEXTS,
            brief=_CAPACITY_BRIEF,
        )
        for group, arms in capacities(report.run).items()
    ]
    charts = Charts(lambda: capacity_bars.charts(report.run), "chart", [capacity_bars.NOTE])
    return Section("capacity", "Capacity", [charts, Tables(tables)], notes=[_note(search)], brief=True)


def overload(report: Report) -> Section[Part]:
    """What overloads did to each arm: medians over the rounds."""
    found = [_overload_row(one) for one in overloads_of(report.run)]
    table = DataTable(_OVERLOAD_HEADS, found, "Overload", keys=2, texts=_OVERLOAD_TEXTS, brief=_OVERLOAD_BRIEF)
    tables = Tables([table] if found else [])
    return Section("overload", "Overload", [tables], notes=[_overload_note(report.run)], brief=True)


def _note(search: CapacitySearch) -> str:
    """What a capacity is, and at which load arms are compared."""
    return (
        f"A capacity is the uniform rate at which half of all trials held {search.conditions}, sent at least "
        f"{units.share(search.achieved)} of the planned requests, and their backlog did not grow: the median over the "
        f"rounds, each of which searches to {units.share(search.resolution)}. x largest is paired by round, whatever "
        "the arms have in flight. The rate beside it is the lowest one that was not held in the round whose capacity "
        "is nearest to the median, with the reason and the busy shares of a trial at it. The tables of latencies are "
        f"of trials at {units.share(search.equal_load)} of the smallest capacity."
    )


def sentences(run: Run) -> list[str]:
    """Who held the most, for each group with a capacity; and the rate at which the group is compared."""
    search, found = run.experiment.find_max, capacities(run)
    if search is None:
        return []
    return [
        f"{f'{group.title}: ' if len(found) > 1 else ''}{_answer(run, arms, search)}" for group, arms in found.items()
    ]


def _answer(run: Run, arms: Sequence[ArmCapacity], search: CapacitySearch) -> str:
    best = arms[0]
    if best.typical is None:
        return f"No arm held {search.conditions} at any rate that was tried."
    parts = [f"{best.name} held {_capacity(best)} requests/s with {search.conditions}."]
    known = [(one, decision_of(one.standing.ratio).word) for one in arms[1:] if one.standing is not None]
    if equal := [one.name for one, word in known if word == "equal"]:
        parts.append(f"Equal within {EQUAL_SHARE}: {', '.join(equal)}.")
    if unsure := [
        f"{one.name} with {units.ratio_of(one.share)} times as much" for one, word in known if word == "undecided"
    ]:
        parts.append(f"Undecided: {', '.join(unsure)}.")
    if (rate := equal_load(search, arms)) is not None and run.trials:
        share = units.share(search.equal_load)
        parts.append(f"Latencies are compared at {units.rate(rate)}/s, {share} of the smallest capacity.")
    return " ".join(parts)


def _row(one: ArmCapacity, arms: Sequence[ArmCapacity]) -> tuple[str, ...]:
    shown = _nearest(one)
    limit = None if shown is None else shown.limit
    if shown is None or limit is None:
        reason = (units.UNKNOWN,) * 3
    else:
        why = why_not_held(limit, shown.search) or units.UNKNOWN
        reason = (
            f"{units.rate(rate_of(limit))}/s, round {shown.round}",
            why,
            bottleneck_shares(_full(limit), limit.busy),
        )
    return (
        one.name,
        _capacity(one),
        _share(one, alone=sum(other.standing is not None for other in arms) < 2),
        f"{len(one.by_round)} of {len(one.searches)}",
        str(sum(len(found.probes) for found in one.searches)),
        *reason,
    )


def _full(probe: Trial) -> Bound | None:
    """The verdict by which busy shares are shown: that of a full machine, since a schedule's verdict names no part."""
    return "machine" if probe.busy.get("machine", 0.0) >= FULL else probe.verdict


def _nearest(one: ArmCapacity) -> ArmSearch | None:
    """The search whose capacity is nearest to the typical one; without a capacity, the last search."""
    typical = one.typical
    if typical is None:
        return one.searches[-1] if one.searches else None
    held = [found for found in one.searches if found.bracket.held is not None]
    return min(held, key=lambda found: abs((found.bracket.middle or 0.0) - typical.value))


def _capacity(one: ArmCapacity) -> str:
    typical = one.typical
    return f"{units.AT_LEAST if one.at_least and typical is not None else ''}{units.ratio_of(typical)}"


def _share(one: ArmCapacity, *, alone: bool) -> str:
    if alone or one.standing is None:
        return units.UNKNOWN
    share: Estimate | None = one.share
    return "1" if one.standing.fastest else units.ratio_of(share)


def _overload_note(run: Run) -> str:
    """What the columns mean."""
    search = run.experiment.find_max
    calm = "" if search is None else f"at {units.share(search.equal_load)} of its capacity "
    return (
        f"Each arm is calm {calm}for the length of a trial, then overloaded as long, then calm {CALM_AFTER} times as "
        "long. Goodput: requests per second that ended with success during the excess. Recovery: from the end of the "
        f"excess until the backlog is at most {RECOVERED:g} times that before it, or 3 requests more. An arm collapses "
        f"if its goodput falls below {units.share(COLLAPSED)} of its capacity; it sheds if requests fail or are "
        "dropped; else it queues them."
    )


def _overload_row(one: Overloaded) -> tuple[str, ...]:
    late, p99 = BY_KEY["late_p99"], BY_KEY["p99"]
    share = None if one.goodput is None else one.goodput / one.capacity
    return (
        one.name,
        units.share(one.share),
        units.rate(one.share * one.capacity),
        units.rate(one.goodput),
        units.share(share),
        *(figure.text(figure.over_rounds(one.trials), at_least=figure.is_bound(one.trials)) for figure in (late, p99)),
        units.share(one.failed),
        units.UNKNOWN if one.recovery is None else units.of_unit(one.recovery[0], "seconds", at_least=one.recovery[1]),
        one.reaction or units.UNKNOWN,
    )
