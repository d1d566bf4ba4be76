"""The terminal's report: cautions, a table for each way to an upstream, and the answer in a sentence."""

from __future__ import annotations

from rich.box import SIMPLE_HEAD
from rich.console import Group as Lines
from rich.console import RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from clientlab.reports import units
from clientlab.reports.answer import answers
from clientlab.reports.rows import Group, Row, groups_of
from clientlab.runs.document import Run

_OVERHEAD = "overhead"
_COLUMNS = (
    "c", "wall", "req/s", "x fastest (95 %)", "p50", "p99", _OVERHEAD, "errors", "conns", "CPU µs/req", "memory",
)  # fmt: skip


def render(run: Run) -> RenderableType:
    """The whole report of a run, for a rich console."""
    parts: list[RenderableType] = [_heading(run)]
    parts += [_caution(caution.text, caution.advice) for caution in run.cautions]
    groups = groups_of(run)
    for group in groups:
        parts += [Text(), _table(group)]
    parts += [Text(), *(Text(sentence, style="bold") for sentence in answers(groups))]
    return Lines(*parts)


def _heading(run: Run) -> Text:
    machine = run.surroundings
    text = Text()
    text.append(f"{run.experiment.question}\n", style="bold")
    text.append(f"run {run.run} · {run.status} · {machine.cpu_model}, {machine.cpu_usable:g} cores · {machine.python}")
    return text


def _caution(text: str, advice: str) -> Text:
    return Text.assemble(("! ", "bold yellow"), (text, "yellow"), f" - {advice}")


def _table(group: Group) -> Table:
    table = Table(
        title=escape(group.title),
        title_justify="left",
        title_style="bold",
        header_style="dim",
        box=SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    delayed = any(row.overhead is not None for row in group.rows)
    table.add_column("strategy", overflow="fold", min_width=20)
    for name in _COLUMNS:
        if name != _OVERHEAD or delayed:
            table.add_column(name, justify="right", no_wrap=name != "errors")
    table.add_column("held back by")
    for row in group.rows:
        cells = _cells(row, delayed=delayed)
        table.add_row(*map(escape, cells), style="bold green" if row.fastest else None)
    return table


def _cells(row: Row, *, delayed: bool) -> list[str]:
    errors = ", ".join(f"{count:,} {kind}" for kind, count in row.errors.items()) or "0"
    return [
        row.strategy,
        str(row.concurrency),
        units.time(row.wall),
        units.rate(row.requests_per_second),
        "1" if row.fastest else units.ratio(row.ratio),
        units.time(row.p50),
        units.time(row.p99),
        *([units.time(row.overhead)] if delayed else []),
        errors,
        f"{row.connections:,.0f}",
        units.micro(row.cpu_per_request),
        units.memory(row.peak_rss_bytes),
        row.verdict.removesuffix("-bound"),
    ]
