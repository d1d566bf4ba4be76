"""Whether a run has enough rounds: those of its plan, those that its precision needs, or those that its time allows."""

from __future__ import annotations

from typing import Literal

from clientlab.analysis.precision import DECIDED_CONFIDENCE, SEQUENTIAL_CONFIDENCE, narrow, settled
from clientlab.judging.claims import finding_of
from clientlab.judging.ranking import ranked
from clientlab.results.document import Run

RoundsEnded = Literal["planned", "precision", "time-budget"]

DEFAULT_TIME_BUDGET = 600.0
"""Seconds. A run on a busy machine has to end, too."""


def ended(run: Run, rounds: int, seconds: float) -> RoundsEnded | None:
    """What ends the run after so many rounds, which took `seconds` in all; None where another round is due.

    A round is not begun that would, at the pace of those before it, end beyond the time budget.
    """
    settings = run.experiment
    if rounds < settings.rounds:
        return None
    if settings.precision is None:
        return "planned"
    if precise(run, settings.precision):
        return "precision"
    budget = DEFAULT_TIME_BUDGET if settings.time_budget is None else settings.time_budget
    return "time-budget" if seconds * (rounds + 1) / rounds > budget else None


def precise(run: Run, precision: float) -> bool:
    """Whether the interval of every ratio to its group's fastest is narrow, and every claim is settled."""
    rows = [row for group in ranked(run).values() for row in group if not row.fastest]
    return all(narrow(row.ratio, precision) for row in rows if row.ratio) and all(
        settled(finding_of(run, claim, SEQUENTIAL_CONFIDENCE), finding_of(run, claim, DECIDED_CONFIDENCE), precision)
        for claim in run.experiment.claims
    )
