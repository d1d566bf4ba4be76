"""Claims with their verdicts, beside what the source printed."""

from __future__ import annotations

from dataclasses import dataclass

from clientlab.reports import units
from clientlab.reports.html.palette import COLOURS, Look
from clientlab.reports.html.plot import Bar, Bars
from clientlab.reports.html.scale import Scale, logarithmic
from clientlab.runs.document import Claim, Run

_SIGNS = {"supported": "✓", "contradicted": "✗", "inconclusive": "?"}


@dataclass(frozen=True)
class Judged:
    """A claim as it is shown; `sign` and verdict say the same, so that neither needs its colour."""

    claim: Claim
    sign: str
    ratio: str


def judged(run: Run) -> list[Judged]:
    """The run's claims, those of the source first, the lab's controls after them."""
    order = sorted(run.claims, key=lambda claim: claim.control)
    return [Judged(claim, _SIGNS[claim.verdict], _ratio(claim)) for claim in order]


def chart(run: Run) -> Bars | None:
    """Every ratio with its interval, against 1."""
    found = [claim for claim in run.claims if claim.ratio is not None and claim.ratio > 0]
    scale = logarithmic([1.0, *(end for claim in found for end in _ends(claim))], room=1.15)
    if not found or scale is None:
        return None
    return Bars(
        title="Ratios and their intervals",
        rows=[_bar(claim, scale) for claim in found],
        ticks=scale.ticks_across(lambda value: f"{units.digits(value, 2)}×"),
        axis="ratio of the second arm's figure to the first's (logarithmic); the line is 1: no difference",
        line=scale.place(1.0),
    )


def _bar(claim: Claim, scale: Scale) -> Bar:
    return Bar(
        name=claim.name,
        look=Look(COLOURS - 1),
        value=_ratio(claim),
        title=f"{claim.name}: {claim.verdict}, ratio {_ratio(claim)}",
        span=(scale.place(claim.interval[0]), scale.place(claim.interval[1])) if claim.interval else None,
        dots=[scale.place(claim.ratio or 1.0)],
    )


def _ends(claim: Claim) -> list[float]:
    return [end for end in (claim.ratio, *(claim.interval or ())) if end is not None]


def _ratio(claim: Claim) -> str:
    if claim.ratio is None:
        return units.NOTHING
    if claim.interval is None:
        return f"{claim.ratio:.2f}"
    return f"{claim.ratio:.2f} ({claim.interval[0]:.2f} to {claim.interval[1]:.2f})"
