"""The answer of a run: a line for each group of arms. It claims no difference that an interval does not show."""

from __future__ import annotations

from collections.abc import Sequence

from clientlab import units
from clientlab.reports.rows import Group, Row


def answers(groups: Sequence[Group]) -> list[str]:
    """A line for each group. Without groups, a line that no trial finished."""
    if not groups:
        return ["No trial finished."]
    return [_answer(group, named=len(groups) > 1) for group in groups]


def _answer(group: Group, *, named: bool) -> str:
    where = f"{group.title}: " if named else ""
    best = next(row for row in group.rows if row.fastest)
    rate = best.figures["throughput"]
    speed = f"{best.name} was the fastest" if rate is None else f"{best.name} made {units.rate(rate)} requests/s"
    others = [row for row in group.rows if row is not best]
    if not others:
        return f"{where}{speed}."
    ties = [row.name for row in others if not _slower(row)]
    tied = f" {_list(ties)} {'is' if len(ties) == 1 else 'are'} not measurably slower." if ties else ""
    return f"{where}{speed}{_lead(others)}.{tied}"


def _lead(others: list[Row]) -> str:
    """The ratio to the next arm that is surely slower, and to the slowest of these."""
    slower = [row for row in others if _slower(row)]
    if not slower:
        return ""
    ends = {row.name: row for row in (slower[0], slower[-1])}
    parts = [f"{units.ratio_of(row.ratio)} times as fast as {name}" for name, row in ends.items()]
    return f", {' and '.join(parts)}"


def _slower(row: Row) -> bool:
    """Whether the whole interval is above 1. Without an interval, no arm counts as slower."""
    return row.ratio is not None and row.ratio.low is not None and row.ratio.low > 1


def _list(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
