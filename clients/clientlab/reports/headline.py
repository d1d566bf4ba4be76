"""The answer of a run: a line for each group of arms. It claims no difference that an interval does not show.

Arms of unlike concurrency are not compared: each concurrency has its own sentence.
"""

from __future__ import annotations

from collections.abc import Sequence

from clientlab import units
from clientlab.reports.rows import Group, Row
from clientlab.results.figures import ranked_by

_P99 = ranked_by(open_load=True)

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
    classes = group.by_load
    sentences = [f"With {group.place_of(rows[0])}, {_lead_of(rows)}" for rows in classes[:_MOST_CLASSES]]
    if classes[_MOST_CLASSES:] and all(row.alone for row in group.rows):  # such as a sweep of c
        sentences = [
            sentences[0],
            "No two arms have the same load." if group.open_load else "No two arms have the same c.",
        ]
    elif left := len(classes[_MOST_CLASSES:]):
        what = "load" if group.open_load else "c"
        sentences.append(f"The table has the arms of {left} more {'value' if left == 1 else 'values'} of {what}.")
    return f"{where}{' '.join(sentences)}"


def _lead_of(rows: Sequence[Row]) -> str:
    """The fastest of arms with equal concurrency, its rate and its lead."""
    best = next(row for row in rows if row.fastest)
    if best.rate is not None:
        return _least_p99(best, [row for row in rows if row is not best])
    rate = best.figures["throughput"]
    speed = f"{best.name} was the fastest" if rate is None else f"{best.name} made {units.rate(rate)} requests/s"
    others = [row for row in rows if row is not best]
    if not others:
        return f"{speed}."
    ties = [row.name for row in others if not _slower(row)]
    tied = f" {_list(ties)} {'is' if len(ties) == 1 else 'are'} not measurably slower." if ties else ""
    return f"{speed}{_lead(others)}.{tied}"


def _least_p99(best: Row, others: list[Row]) -> str:
    """The arm of an open load with the least p99, and its lead. An arm whose p99 is only a lower bound has none."""
    known = [row for row in others if _P99.key not in row.bounds]
    slower = [row for row in known if _slower(row)]
    ends = {row.name: row for row in (slower[0], slower[-1])} if slower else {}
    parts = [f"that of {name} is {units.ratio_of(row.ratio)} times as long" for name, row in ends.items()]
    sentences = [f"{best.name} had a p99 of {best.text(_P99)} from the planned start{'; ' if parts else ''}"]
    sentences[0] += f"{' and '.join(parts)}."
    if ties := [row.name for row in known if not _slower(row)]:
        sentences.append(f"{_list(ties)} {'is' if len(ties) == 1 else 'are'} not measurably slower.")
    if unknown := [f"{row.name} ({row.text(_P99)})" for row in others if row not in known]:
        sentences.append(f"So many requests failed or were dropped that p99 is only a lower bound: {_list(unknown)}.")
    return " ".join(sentences)


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
