"""The answer of a run in a sentence for each way to an upstream, no bolder than its intervals allow."""

from __future__ import annotations

from clientlab.reports import units
from clientlab.reports.rows import Group, Row


def answers(groups: list[Group]) -> list[str]:
    """A sentence a group; one that says so where nothing was measured."""
    if not groups:
        return ["Nothing was measured: no trial finished."]
    return [_answer(group, named=len(groups) > 1) for group in groups]


def _answer(group: Group, *, named: bool) -> str:
    where = f"{group.title}: " if named else ""
    best = next(row for row in group.rows if row.fastest)
    speed = f"{best.name} did {units.rate(best.requests_per_second)} requests/s"
    others = [row for row in group.rows if row is not best]
    if not others:
        return f"{where}{speed}."
    ties = [row.name for row in others if not _slower(row)]
    tied = f", and {_list(ties)} can't be told from it" if ties else ""
    return f"{where}{speed}{_lead(others)}{tied}."


def _lead(others: list[Row]) -> str:
    """How far the fastest is ahead of the next that is surely slower, and of the last."""
    slower = [row for row in others if _slower(row)]
    if not slower:
        return ""
    ends = {row.name: row for row in (slower[0], slower[-1])}
    parts = [f"{units.ratio(row.ratio)} times as fast as {name}" for name, row in ends.items()]
    return f", {' and '.join(parts)}"


def _slower(row: Row) -> bool:
    """Surely slower: the whole interval is above 1. Without an interval nothing is sure."""
    return row.ratio is not None and row.ratio.low is not None and row.ratio.low > 1


def _list(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
