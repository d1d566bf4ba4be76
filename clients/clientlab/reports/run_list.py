"""The runs of a results folder, one row per run."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from clientlab import units
from clientlab.analysis.decisions import decision_of
from clientlab.errors import LabError
from clientlab.judging.judgement import read_judged
from clientlab.reports import headline
from clientlab.reports.rows import Group, Row, groups_of
from clientlab.results.document import Run
from clientlab.results.figures import BY_KEY
from clientlab.results.store import RUN_FILE, Store

Rows = list[dict[str, Any]]
_TO_THE_MINUTE = len("2024-05-06T07:08")
_MOST_STRATEGIES = 3
_LONGEST_ANSWER = 120
WITHOUT_EXPERIMENT = "run"
"""The experiment's name of a run whose command line names strategies."""
_VERDICTS = ("supported", "contradicted", "inconclusive")


def rows(store: Store) -> Rows:
    """Every run, the oldest first. A run that cannot be read has `status` ``unreadable`` and a `reason`."""
    return [_row(store, name) for name in store.names()]


def render(found: Rows) -> Table:
    """The rows as a table."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("run", no_wrap=True)
    for name in ("measured", "when", "status", "trials", "answer"):
        table.add_column(name, overflow="fold", justify="right" if name == "trials" else "left")
    for row in found:
        failed = f" ({row['failed']} failed)" if row["failed"] else ""
        trials = None if row["trials"] is None else f"{row['trials']}{failed}"
        when = None if row["when"] is None else row["when"][:_TO_THE_MINUTE].replace("T", " ")
        cells = (row["run"], _measured(row), when, row["reason"] or row["status"], trials, row["answer"])
        table.add_row(*(Text(cell or units.UNKNOWN) for cell in cells))
    return table


def _measured(row: dict[str, Any]) -> str | None:
    """The experiment, or the strategies of a run without one."""
    if row["experiment"] != WITHOUT_EXPERIMENT:
        name: str | None = row["experiment"]
        return name
    shown, more = row["strategies"][:_MOST_STRATEGIES], len(row["strategies"]) - _MOST_STRATEGIES
    return ", ".join([*shown, f"{more} more"] if more > 0 else shown)


def _row(store: Store, name: str) -> dict[str, Any]:
    try:
        return {"run": name, **_readable(read_judged(store.folder / name / RUN_FILE))}
    except LabError as error:
        nothing = dict.fromkeys(("experiment", "strategies", "when", "machine", "trials", "failed", "answer"))
        return {"run": name, **nothing, "status": "unreadable", "claims": {}, "reason": f"unreadable: {error}"}


def _readable(run: Run) -> dict[str, Any]:
    verdicts: list[str] = [claim.verdict for claim in run.claims]
    return {
        "experiment": run.experiment.name,
        "strategies": list(dict.fromkeys(arm.strategy for arm in run.experiment.arms)),
        "when": run.created,
        "machine": f"{run.surroundings.host}, {run.surroundings.cpu_model}",
        "trials": run.measured,
        "failed": sum(trial.status != "done" for trial in run.trials),
        "status": run.status,
        "claims": {verdict: verdicts.count(verdict) for verdict in _VERDICTS} if verdicts else {},
        "answer": _answer(run, verdicts),
        "reason": None,
    }


def _answer(run: Run, verdicts: Sequence[str]) -> str | None:
    """What the run answered, in one short line: its claims, its first sentence of a comparison, or who is ahead."""
    if verdicts:
        return ", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in _VERDICTS if verdict in verdicts)
    if answers := headline.environment_answers(run):
        return textwrap.shorten(answers[0].sentence, _LONGEST_ANSWER, placeholder=" …")
    groups = groups_of(run)
    return _lead(groups) if groups else None


def _lead(groups: Sequence[Group]) -> str:
    """Who is ahead in the first group, among arms of equal load, and of how many others that is sure."""
    rows = groups[0].by_load[0] if groups[0].mixed else groups[0].rows
    where = f"{groups[0].title}: " if len(groups) > 1 else ""
    rows = [row for row in rows if not row.shortfall]
    return f"{where}{_lead_of(rows)}" if rows else f"{where}no arm reached its concurrency"


def _lead_of(rows: Sequence[Row]) -> str:
    best = next(row for row in rows if row.fastest)
    slower = sum(decision_of(row.ratio).word == "slower" for row in rows if row is not best)
    others = len(rows) - 1
    if not others and best.rate is not None:
        return f"{best.name} had a p99 of {best.text(BY_KEY['p99'])}"
    if not others:
        rate = best.figures["highest_rate"] or best.figures["throughput"]
        return f"{best.name} made {units.rate(rate)} requests/s"
    if all(row.ratio is None for row in rows if row is not best):
        return f"{len(rows)} arms, and no ratio is known"
    if not slower:
        return f"{best.name} is first, and none is surely slower"
    if others == 1:
        return f"{best.name} is faster than {next(row.name for row in rows if row is not best)}"
    return f"{best.name} is faster than {slower} of {others} others"
