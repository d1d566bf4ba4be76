"""The answer of arms with retry policies: what each serves, and what the upstream bears for it."""

from __future__ import annotations

from collections.abc import Sequence

from clientlab.reports.rows import Group
from clientlab.results.figures import BY_KEY

_SERVED, _BORNE, _AFTER = (BY_KEY[key] for key in ("served_share", "amplification", "after_outage"))


def answers(groups: Sequence[Group]) -> list[str] | None:
    """A line for each group, in place of its least p99: a policy that serves more requests takes longer for it.

    None where no policy had anything to repeat, or a group has no policies.
    """
    if not groups or not all(group.shows(_SERVED, "retries") for group in groups) or not _repeated(groups):
        return None
    what = "Served requests, and those at the upstream for each of the caller's"
    what += "; behind an outage, the load after it over that before it" if any(map(_outage, groups)) else ""
    named = len(groups) > 1
    return [f"{what}.", *(f"{f'{group.title}: ' if named else ''}{_answer(group)}" for group in groups)]


def _repeated(groups: Sequence[Group]) -> bool:
    return any((row.figures[_BORNE.key] or 1) > 1 or row.errors for group in groups for row in group.rows)


def _outage(group: Group) -> bool:
    return any(row.figures[_AFTER.key] is not None for row in group.rows)


def _answer(group: Group) -> str:
    figures = (_SERVED, _BORNE, *([_AFTER] if _outage(group) else []))
    rows = sorted(group.rows, key=lambda row: row.figures[_SERVED.key] or 0, reverse=True)
    shown = [f"{group.name_of(row)} {', '.join(row.text(figure) for figure in figures)}" for row in rows]
    return f"{'; '.join(shown)}."
