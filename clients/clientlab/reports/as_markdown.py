"""A run as Markdown, for a README, an issue or a comment: answer, thresholds, cautions, tables, claims, the command."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from clientlab import units
from clientlab.judging.thresholds import ThresholdResult
from clientlab.reports import (
    capacity,
    ceilings,
    environments,
    estimand,
    links,
    overload,
    partial,
    servers,
    shards,
    thresholds,
)
from clientlab.reports.claims import doubts, sentence
from clientlab.reports.markdown import code, escaped, table
from clientlab.reports.rows import groups_of
from clientlab.reports.table import heads_and_rows
from clientlab.results.document import ClaimResult, Run


def render(run: Run, judged: Sequence[ThresholdResult] = ()) -> str:
    """The whole document. `judged`: the thresholds of its user, with their outcomes."""
    return "\n".join(_parts(run, judged))


def _parts(run: Run, judged: Sequence[ThresholdResult]) -> Iterator[str]:
    yield f"**{escaped(run.experiment.question)}**\n"
    groups = groups_of(run)
    sentences = [*capacity.answers_of(run, groups), *environments.sentences(run), *links.sentences(run)]
    yield "".join(f"{escaped(sentence)}  \n" for sentence in sentences)
    if judged:
        yield "".join(f"- {escaped(line)}\n" for line in thresholds.lines(judged))
    if run.cautions:
        yield "".join(f"> **{escaped(one.text)}** - {escaped(one.advice)}  \n" for one in run.cautions)
    yield from _capacities(run)
    for group in groups:
        yield f"{escaped(group.title)}\n\n{table(*heads_and_rows(group))}"
    if any(len(group.rows) > 1 for group in groups):
        yield f"{escaped(estimand.standings(group.open_load for group in groups))}\n"
    yield from (f"{escaped(line)}\n" for line in [*shards.lines(run), *ceilings.lines(run)])
    if cells := servers.rows(run):
        yield f"{escaped(servers.TITLE)}\n\n{table(servers.HEADS, cells, left=servers.LEFT)}"
    if early := partial.rows(run):
        yield f"{escaped(partial.TITLE)}\n\n{table(partial.HEADS, early)}"
    if run.claims:
        yield table(("claim", "verdict", "ratio (95 %)", "rounds", "measured"), map(_claim, run.claims), left=5)
        yield f"{escaped(estimand.PAIRED)}\n"
    where = run.surroundings
    yield (
        f"Run {escaped(run.run)} ({run.status}) on {escaped(where.cpu_model)}, {where.cpu_usable:g} cores, "
        f"{escaped(where.system)} {escaped(where.kernel)}, {escaped(where.python)}, "
        f"clientlab {escaped(run.clientlab)}. Command: {code(run.experiment.command)}\n"
    )
    if where.placement is not None:
        yield f"Pinned: {escaped(str(where.placement))}\n"
    yield from (f"Environment {escaped(line)}\n" for line in environments.lines(run))


def _capacities(run: Run) -> Iterator[str]:
    """The capacities that a search found, and what overloads did."""
    for title, cells in capacity.tables(run):
        yield f"{escaped(title)}\n\n{table(capacity.HEADS, cells, left=capacity.LEFT)}"
    if note := capacity.note(run):
        yield f"{escaped(note)}\n"
    if overloaded := overload.rows(run):
        yield f"{escaped(overload.TITLE)}\n\n{table(overload.HEADS, overloaded, left=overload.LEFT)}"
        yield f"{escaped(overload.note(run))}\n"


def _claim(claim: ClaimResult) -> list[str]:
    ratio = units.ratio(claim.ratio, claim.interval)
    return [sentence(claim), claim.verdict, ratio, str(claim.rounds), claim.measured + doubts(claim)]
