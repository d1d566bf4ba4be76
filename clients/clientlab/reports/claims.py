"""The claims of a run for the terminal: what was said, what was measured, and the verdict."""

from __future__ import annotations

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Group as Lines
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from clientlab.reports import units
from clientlab.runs.document import Claim

_STYLES = {"supported": "green", "contradicted": "red", "inconclusive": "yellow"}


def render(claims: Sequence[Claim]) -> RenderableType:
    """A table of all claims; below it, what would settle those that are inconclusive."""
    table = Table(header_style="dim", box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for name in ("claim", "verdict"):
        table.add_column(name, no_wrap=name == "verdict")
    table.add_column("ratio (95 %)", justify="right", no_wrap=True)
    table.add_column("rounds", justify="right")
    table.add_column("published", overflow="fold")
    table.add_column("measured here", overflow="fold", ratio=1)
    for claim in claims:
        cells = (
            _text(claim),
            claim.verdict,
            interval(claim),
            str(claim.rounds),
            claim.published or "-",
            claim.measured,
        )
        table.add_row(*map(Text, cells[:1]), Text(claim.verdict, style=_STYLES[claim.verdict]), *map(Text, cells[2:]))
    open_ones = [claim for claim in claims if claim.settles]
    return Lines(table, *(Text(f"{claim.name}: to be settled by {claim.settles}") for claim in open_ones))


def interval(claim: Claim) -> str:
    """The ratio and, where there are rounds enough, its interval."""
    if claim.ratio is None:
        return units.NOTHING
    value = units.digits(claim.ratio)
    return value if claim.interval is None else f"{value} ({' to '.join(map(units.digits, claim.interval))})"


def _text(claim: Claim) -> str:
    return f"(control) {claim.text}" if claim.control else claim.text
