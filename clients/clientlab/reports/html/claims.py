"""The chart of the ratios of claims."""

from __future__ import annotations

from clientlab import units
from clientlab.reports.charts.palette import NEUTRAL
from clientlab.reports.charts.scale import Scale, logarithmic
from clientlab.reports.charts.shapes import Bar, BarChart
from clientlab.results.document import ClaimResult, Run


def chart(run: Run) -> BarChart | None:
    """Every ratio with its confidence interval, against 1."""
    found = [claim for claim in run.claims if claim.ratio is not None and claim.ratio > 0]
    scale = logarithmic([1.0, *(end for claim in found for end in _ends(claim))], room=1.15)
    if not found or scale is None:
        return None
    return BarChart(
        title="Ratios with their 95 % confidence intervals",
        rows=[_bar(claim, scale) for claim in found],
        ticks=scale.ticks_across(lambda value: f"{units.digits(value, 2)}×"),
        axis="figure of the second arm over that of the first (logarithmic); the dashed line is 1: no difference",
        line=scale.place(1.0),
    )


def _bar(claim: ClaimResult, scale: Scale) -> Bar:
    ratio = units.ratio(claim.ratio, claim.interval)
    return Bar(
        name=claim.name,
        look=NEUTRAL,
        value=ratio,
        title=f"{claim.name}: {claim.verdict}, ratio {ratio}",
        span=(scale.place(claim.interval[0]), scale.place(claim.interval[1])) if claim.interval else None,
        dots=[scale.place(claim.ratio or 1.0)],
    )


def _ends(claim: ClaimResult) -> list[float]:
    return [end for end in (claim.ratio, *(claim.interval or ())) if end is not None]
