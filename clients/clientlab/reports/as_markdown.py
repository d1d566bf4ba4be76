"""A run as Markdown, for a README or an issue: the answer, cautions, tables, claims, and how to run it again."""

from __future__ import annotations

from collections.abc import Iterator

from clientlab.reports import servers, units
from clientlab.reports.answer import answers
from clientlab.reports.markdown import code, escaped, table
from clientlab.reports.rows import Group, groups_of
from clientlab.reports.table import head_of, headed_cells
from clientlab.runs.document import Claim, Run


def render(run: Run) -> str:
    """The whole document."""
    return "\n".join(_parts(run))


def _parts(run: Run) -> Iterator[str]:
    yield f"**{escaped(run.experiment.question)}**\n"
    groups = groups_of(run)
    yield "".join(f"{escaped(sentence)}  \n" for sentence in answers(groups))
    if run.cautions:
        yield "".join(f"> **{escaped(one.text)}** - {escaped(one.advice)}  \n" for one in run.cautions)
    for group in groups:
        yield f"{escaped(group.title)}\n\n{_table(group)}"
    if cells := servers.rows(run):
        yield f"{escaped(servers.TITLE)}\n\n{table(servers.HEADS, cells, left=servers.LEFT)}"
    if run.claims:
        yield table(("claim", "verdict", "ratio (95 %)", "rounds", "measured"), map(_claim, run.claims), left=5)
    where = run.surroundings
    yield (
        f"Run {escaped(run.run)} ({run.status}) on {escaped(where.cpu_model)}, {where.cpu_usable:g} cores, "
        f"{escaped(where.system)} {escaped(where.kernel)}, {escaped(where.python)}, "
        f"clientlab {escaped(run.clientlab)}. Again: {code(run.experiment.command)}\n"
    )


def _table(group: Group) -> str:
    heads, cells = zip(*headed_cells(group), strict=True)
    rows = [[row.name, *line] for row, *line in zip(group.rows, *cells, strict=True)]
    return table([head_of(group.rows), *heads], rows)


def _claim(claim: Claim) -> list[str]:
    ratio = units.NOTHING if claim.ratio is None else f"{claim.ratio:.2f}"
    if claim.interval is not None:
        ratio += f" ({claim.interval[0]:.2f} to {claim.interval[1]:.2f})"
    return [claim.text, claim.verdict, ratio, str(claim.rounds), claim.measured]
