"""Whether a run has rounds enough: as many as planned, or as its precision needs, or its time allows."""

from __future__ import annotations

from typing import Literal

from clientlab.analysis.precision import DECIDED_CONFIDENCE, SEQUENTIAL_CONFIDENCE, narrow
from clientlab.analysis.ratios import Ratio
from clientlab.runs.claims import judged
from clientlab.runs.document import Claim, Run
from clientlab.runs.ranking import ranked

Ended = Literal["planned", "precision", "time-budget"]

DEFAULT_TIME_BUDGET = 600.0
"""Seconds: no run goes on for ever because its machine is restless."""


def ended(run: Run, rounds: int, seconds: float) -> Ended | None:
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
    """Whether the interval of every ratio to its group's fastest is narrow, and every claim is narrow or decided."""
    rows = [row for group in ranked(run).values() for row in group if not row.fastest]
    if not all(narrow(row.ratio, precision) for row in rows if row.ratio):
        return False
    decided = judged(run, DECIDED_CONFIDENCE)
    return all(
        surely.verdict != "inconclusive" or _narrow(claim, precision)
        for claim, surely in zip(judged(run, SEQUENTIAL_CONFIDENCE), decided, strict=True)
    )


def _narrow(claim: Claim, precision: float) -> bool:
    if claim.ratio is None:
        return True  # an arm that fails: no further round would tell
    low, high = claim.interval or (None, None)
    return narrow(Ratio(claim.ratio, low, high, claim.rounds), precision)
