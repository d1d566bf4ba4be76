"""The terminal's comparison: what differs around the runs, a column a run, and thresholds."""

from __future__ import annotations

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Group as Lines
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from clientlab.reports import compared
from clientlab.runs.changes import Change, Comparison
from clientlab.runs.thresholds import Judged

_STYLES = {"better": "green", "worse": "bold red", "cannot say": "yellow"}


def render(comparison: Comparison, judged: Sequence[Judged]) -> RenderableType:
    """The whole comparison, for a rich console."""
    parts: list[RenderableType] = [Text.assemble("baseline ", (compared.heading(comparison.base), "bold"))]
    parts += [Text.assemble("against  ", (compared.heading(one.run), "bold")) for one in comparison.others]
    for name, lines in compared.notices(comparison):
        parts.append(Text.assemble(("! ", "bold yellow"), (f"{name}:", "yellow")))
        parts += [Text(f"    {line}") for line in lines]
    parts += [Text(), _table(comparison), Text(compared.summary(comparison), style="bold")]
    parts += [Text(line, style="bold red" if "FAILED" in line else "bold") for line in compared.judged_lines(judged)]
    return Lines(*parts)


def _table(comparison: Comparison) -> Table:
    table = Table(header_style="dim", box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("", overflow="fold")
    table.add_column("baseline", justify="right", no_wrap=True)
    for one in comparison.others:
        table.add_column(one.run.run if len(comparison.others) > 1 else "now", overflow="fold")
    for arm in comparison.arms():
        table.add_row(Text(arm, style="bold"))
        for name in comparison.quantities:
            found = [one.changes[arm][name] if arm in one.changes else None for one in comparison.others]
            before = next(compared.figure(change.before, change.quantity.unit) for change in found if change)
            table.add_row(Text(f"  {name}"), before, *map(_cell, found))
        table.add_row()
    return table


def _cell(change: Change | None) -> Text:
    if change is None:
        return Text("-")
    after = compared.figure(change.after, change.quantity.unit)
    style = _STYLES.get(change.verdict, "")
    return Text.assemble(f"{after:>9}  ", (f"{change.word:<12}", style), f" {compared.estimate(change)}")
