"""The claims of a run: their verdicts as a section, as a table and as a chart of their ratios."""

from __future__ import annotations

from collections.abc import Sequence

from clientlab import units
from clientlab.reports.charts.row_charts import Row, RowChart, forest_plot
from clientlab.reports.colours import GREY
from clientlab.reports.data_table import DataTable
from clientlab.reports.sections import Charts, Lines, Part, Report, Section, Verdicts
from clientlab.results.document import ClaimResult

SIGNS = {
    "supported": "✓", "contradicted": "✗", "inconclusive": "?",
    "better": "✓", "worse": "✗", "undecided": "?",
}  # fmt: skip
"""Verdicts on claims and changes, to signs for readers who cannot tell colours apart."""

PAIRED = (
    "A ratio is the typical one: the median over the rounds of how many times as much one arm has as the other in the "
    "same round."
)


def claims(report: Report) -> Section:
    """Return the source of the claims, the verdict on each claim, and the ratios as a chart."""
    plan, source = report.run.experiment, report.run.experiment.source
    found = sorted(report.run.claims, key=lambda claim: claim.control)  # those of the source first
    cited = "" if source is None else ", ".join(filter(None, (source.title, source.authors, source.date, source.url)))
    uncontrolled = plan.uncontrolled if source or found else []
    parts: list[Part] = [
        Lines([f"Source: {cited}."] if cited else []),
        Lines([f"The source did not control: {one}" for one in uncontrolled], brief=False),
        Verdicts(found),
        Charts(lambda: ratio_chart(report.run.claims)),
    ]
    return Section("claims", "Claims", parts, notes=[PAIRED] if found else [], brief=True)


def claims_table(found: Sequence[ClaimResult]) -> DataTable:
    """Return a table of the claims for text formats."""
    heads = ("verdict", "claim", "ratio (95 %)", "rounds", "measured", "published")
    rows = [
        (
            f"{SIGNS[claim.verdict]} {claim.verdict}",
            sentence(claim) + doubts(claim),
            units.ratio(claim.ratio, claim.interval),
            str(claim.rounds),
            claim.measured,
            claim.published or units.UNKNOWN,
        )
        for claim in found
    ]
    return DataTable(heads, rows, texts=(1, 4, 5), brief=(1, 2))


def sentence(claim: ClaimResult) -> str:
    """Return the claim's text, with the mark of a control and the band of ratios that supports it."""
    band = f" [{units.digits(claim.band[0])} to {units.digits(claim.band[1])}]" if claim.band else ""
    return f"{'(control) ' if claim.control else ''}{claim.text}{band}"


def doubts(claim: ClaimResult) -> str:
    """Return the kinds of the cautions about the claim's arms, in parentheses."""
    return f" (caution: {', '.join(claim.cautions)})" if claim.cautions else ""


def ratio_chart(claims: Sequence[ClaimResult]) -> list[RowChart]:
    """Every ratio with its confidence interval, against 1."""
    found = [
        Row(
            name=claim.name,
            text=f"{units.ratio(claim.ratio, claim.interval)} {claim.verdict}",
            colour=GREY,
            interval=claim.interval,
            dots=[claim.ratio],
        )
        for claim in claims
        if claim.ratio is not None and claim.ratio > 0
    ]
    title = "Ratios with their 95 % confidence intervals"
    return [forest_plot(title, found, "figure of the second arm over that of the first")] if found else []
