"""The claims of a run: as a section of its report, as sentences, and as a chart of their ratios."""

from __future__ import annotations

from collections.abc import Sequence

from clientlab import units
from clientlab.reports.charts.chart_data import NEUTRAL
from clientlab.reports.charts.forest import Entry, forest
from clientlab.reports.charts.shapes import BarChart
from clientlab.reports.sections import Charts, Citation, Details, Part, Report, Section, Verdicts
from clientlab.results.document import ClaimResult

SIGNS = {"supported": "✓", "contradicted": "✗", "inconclusive": "?"}
"""Verdict → sign, for readers who cannot tell the colours apart."""

PAIRED = (
    "A ratio is the typical one: the median over the rounds of how many times as much one arm has as the other in the "
    "same round."
)
"""What a ratio of two arms is an estimate of."""


def claims(report: Report) -> Section[Part]:
    """The source of the claims, the verdict on each claim, and the ratios as a chart."""
    plan = report.run.experiment
    found = sorted(report.run.claims, key=lambda claim: claim.control)  # those of the source first
    uncontrolled = plan.uncontrolled if plan.source or found else []
    parts: list[Part] = [
        *([Citation((plan.source,))] if plan.source else []),
        Details("What the source did not control", uncontrolled, open=True),
        Verdicts(found),
        Charts(lambda: [chart] if (chart := ratio_chart(report.run.claims)) else []),
    ]
    return Section("claims", "Claims", parts, notes=[PAIRED] if found else [], brief=True)


def sentence(claim: ClaimResult) -> str:
    """The claim's text, after the mark of a control, and with the band of ratios that supports it."""
    band = f" [{units.digits(claim.band[0])} to {units.digits(claim.band[1])}]" if claim.band else ""
    return f"{'(control) ' if claim.control else ''}{claim.text}{band}"


def doubts(claim: ClaimResult) -> str:
    """The kinds of the cautions about the claim's arms, in parentheses; empty without one."""
    return f" (caution: {', '.join(claim.cautions)})" if claim.cautions else ""


def ratio_chart(claims: Sequence[ClaimResult]) -> BarChart | None:
    """Every ratio with its confidence interval, against 1."""
    found = [
        Entry(claim.name, NEUTRAL, claim.ratio, claim.interval, claim.verdict)
        for claim in claims
        if claim.ratio is not None and claim.ratio > 0
    ]
    return forest(
        "Ratios with their 95 % confidence intervals", found, "figure of the second arm over that of the first"
    )
