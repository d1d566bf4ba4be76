"""What overloads did to the arms of a run, as a table for every report."""

from __future__ import annotations

from clientlab import units
from clientlab.judging.overload import CALM_AFTER, COLLAPSED, RECOVERED, Overloaded, overloads_of
from clientlab.results.document import Run
from clientlab.results.figures import BY_KEY

TITLE = "Overload"
HEADS = (
    "arm", "overload", "rate/s", "goodput/s", "of capacity", "late p99", "p99", "failed", "recovery", "what it does",
)  # fmt: skip
TEXTS = frozenset({"arm", "what it does"})
"""Columns of text; the others are of numbers."""

LEFT = 1
"""Columns before the first number."""


def rows(run: Run) -> list[tuple[str, ...]]:
    """Cells under `HEADS`: medians over the rounds. None in a run without overloads."""
    return [_row(one) for one in overloads_of(run)]


def note(run: Run) -> str:
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


def _row(one: Overloaded) -> tuple[str, ...]:
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
