"""The answer of a run: a line for each group of arms. It claims no difference that an interval does not show.

Arms of unlike concurrency are not compared: each concurrency has its own sentence.
"""

from __future__ import annotations

from collections.abc import Sequence

from clientlab import units
from clientlab.reports.rows import Group, Row

_MOST_CLASSES = 4
"""Values of the concurrency that have a sentence, those with the fastest arms first."""


def answers(groups: Sequence[Group]) -> list[str]:
    """A line for each group. Without groups, a line that no trial finished."""
    if not groups:
        return ["No trial finished."]
    return [_answer(group, named=len(groups) > 1) for group in groups]


def _answer(group: Group, *, named: bool) -> str:
    where = f"{group.title}: " if named else ""
    if not group.mixed:
        return f"{where}{_lead_of(group.rows)}"
    classes = group.by_concurrency
    sentences = [f"With c={rows[0].concurrency}, {_lead_of(rows)}" for rows in classes[:_MOST_CLASSES]]
    if classes[_MOST_CLASSES:] and all(row.alone for row in group.rows):  # such as a sweep of c
        sentences = [sentences[0], "No two arms have the same c."]
    elif left := len(classes[_MOST_CLASSES:]):
        sentences.append(f"The table has the arms of {left} more {'value' if left == 1 else 'values'} of c.")
    return f"{where}{' '.join(sentences)}"


def _lead_of(rows: Sequence[Row]) -> str:
    """The fastest of arms with equal concurrency, its rate and its lead."""
    best = next(row for row in rows if row.fastest)
    rate = best.figures["throughput"]
    speed = f"{best.name} was the fastest" if rate is None else f"{best.name} made {units.rate(rate)} requests/s"
    others = [row for row in rows if row is not best]
    if not others:
        return f"{speed}."
    ties = [row.name for row in others if not _slower(row)]
    tied = f" {_list(ties)} {'is' if len(ties) == 1 else 'are'} not measurably slower." if ties else ""
    return f"{speed}{_lead(others)}.{tied}"


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
