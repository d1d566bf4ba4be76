"""The claims of a run for the terminal: text, verdict, ratio, and the published and measured values."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group as Lines
from rich.console import RenderableType
from rich.text import Text

from clientlab import units
from clientlab.reports.table import plain_table
from clientlab.results.document import ClaimResult

_STYLES = {"supported": "green", "contradicted": "red", "inconclusive": "yellow"}


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
            _text(claim),
            claim.verdict,
            units.ratio(claim.ratio, claim.interval),
            str(claim.rounds),
            claim.published or units.UNKNOWN,
            claim.measured,
        )
        table.add_row(*map(Text, cells[:1]), Text(claim.verdict, style=_STYLES[claim.verdict]), *map(Text, cells[2:]))
    settling = [Text(f"{claim.name}: to settle it: {claim.settles}") for claim in claims if claim.settles]
    return Lines(table, *settling)


def _text(claim: ClaimResult) -> str:
    return f"(control) {claim.text}" if claim.control else claim.text
