"""The claims of a run for the terminal: a short list under a run's table, and all that `clientlab claims` shows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Group as Lines
from rich.console import RenderableType
from rich.text import Text

from clientlab import units
from clientlab.reports import estimand
from clientlab.reports.table import plain_table
from clientlab.results.document import ClaimResult

SIGNS = {"supported": "✓", "contradicted": "✗", "inconclusive": "?"}
"""Verdict → sign, for readers who cannot tell the colours apart."""

_STYLES = {"supported": "green", "contradicted": "red", "inconclusive": "yellow"}


def source_first(claims: Iterable[ClaimResult]) -> list[ClaimResult]:
    """The claims of the source in their order, the lab's controls after them."""
    return sorted(claims, key=lambda claim: claim.control)


def verdicts(claims: Iterable[ClaimResult]) -> RenderableType:
    """Verdict, sentence, cautions and ratio of each claim, as they stand under the table of a run."""
    table = plain_table()
    table.add_column("verdict", no_wrap=True)
    table.add_column("claim", overflow="fold", ratio=1)
    table.add_column("ratio (95 %)", justify="right", no_wrap=True)
    for claim in source_first(claims):
        verdict = Text(f"{SIGNS[claim.verdict]} {claim.verdict}", style=_STYLES[claim.verdict])
        table.add_row(verdict, Text(sentence(claim) + doubts(claim)), Text(units.ratio(claim.ratio, claim.interval)))
    return table


def render(claims: Sequence[ClaimResult]) -> RenderableType:
    """A table of all claims. Lines below it say what would settle the inconclusive ones."""
    table = plain_table()
    for name in ("claim", "verdict"):
        table.add_column(name, no_wrap=name == "verdict")
    table.add_column("ratio (95 %)", justify="right", no_wrap=True)
    table.add_column("rounds", justify="right")
    table.add_column("published", overflow="fold")
    table.add_column("measured", overflow="fold", ratio=1)
    for claim in claims:
        cells = (
            sentence(claim),
            claim.verdict,
            units.ratio(claim.ratio, claim.interval),
            str(claim.rounds),
            claim.published or units.UNKNOWN,
            claim.measured + doubts(claim),
        )
        table.add_row(*map(Text, cells[:1]), Text(claim.verdict, style=_STYLES[claim.verdict]), *map(Text, cells[2:]))
    settling = [Text(f"{claim.name}: to settle it: {claim.settles}") for claim in claims if claim.settles]
    return Lines(table, Text(estimand.PAIRED, style="dim"), *settling)


def sentence(claim: ClaimResult) -> str:
    """The claim's text, after the mark of a control, and with the band of ratios that supports it."""
    return f"(control) {with_band(claim)}" if claim.control else with_band(claim)


def with_band(claim: ClaimResult) -> str:
    """The claim's text, with the band of ratios that supports it where it has one."""
    if claim.band is None:
        return claim.text
    return f"{claim.text} [{units.digits(claim.band[0])} to {units.digits(claim.band[1])}]"


def doubts(claim: ClaimResult) -> str:
    """The kinds of the cautions about the claim's arms, in parentheses; empty without one."""
    return f" (caution: {', '.join(claim.cautions)})" if claim.cautions else ""
