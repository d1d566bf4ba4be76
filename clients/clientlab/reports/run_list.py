"""The runs of a results folder, one row per run."""

from __future__ import annotations

import textwrap
from typing import Any

from rich.table import Table
from rich.text import Text

from clientlab import units
from clientlab.errors import LabError
from clientlab.judging.judgement import read_judged
from clientlab.reports import headline
from clientlab.reports.rows import groups_of
from clientlab.results.store import RUN_FILE, Store

Rows = list[dict[str, Any]]
WITHOUT_EXPERIMENT = "run"
"""The experiment's name of a run whose command line names strategies."""
_VERDICTS = ("supported", "contradicted", "inconclusive")


def rows(store: Store) -> Rows:
    """Return every run, the oldest first. A run that cannot be read has `status` ``unreadable`` and a `reason`."""
    return [_row(store, name) for name in store.names()]


def render(found: Rows) -> Table:
    """Return the rows as a table."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("run", no_wrap=True)
    for name in ("measured", "when", "status", "trials", "answer"):
        table.add_column(name, overflow="fold", justify="right" if name == "trials" else "left")
    for row in found:
        measured = row["experiment"]
        if measured == WITHOUT_EXPERIMENT:
            measured = textwrap.shorten(", ".join(row["strategies"]), 60, placeholder=" …")
        failed = f" ({row['failed']} failed)" if row["failed"] else ""
        trials = None if row["trials"] is None else f"{row['trials']}{failed}"
        when = row["when"] and row["when"][: len("2024-05-06T07:08")].replace("T", " ")
        cells = (row["run"], measured, when, row["reason"] or row["status"], trials, row["answer"])
        table.add_row(*(Text(cell or units.UNKNOWN) for cell in cells))
    return table


def _row(store: Store, name: str) -> dict[str, Any]:
    try:
        run = read_judged(store.folder / name / RUN_FILE)
    except LabError as error:
        nothing = dict.fromkeys(("experiment", "strategies", "when", "machine", "trials", "failed", "answer"))
        return {"run": name, **nothing, "status": "unreadable", "claims": {}, "reason": f"unreadable: {error}"}
    if run.claims:
        answer = headline.tally(run.claims)
    else:
        answer = (headline.environment_answers(run) or headline.group_answers(groups_of(run)))[0].sentence
    verdicts = [str(claim.verdict) for claim in run.claims]
    return {
        "run": name,
        "experiment": run.experiment.name,
        "strategies": list(dict.fromkeys(arm.strategy for arm in run.experiment.arms)),
        "when": run.created,
        "machine": f"{run.surroundings.host}, {run.surroundings.cpu_model}",
        "trials": run.measured,
        "failed": sum(trial.status != "done" for trial in run.trials),
        "status": run.status,
        "claims": {verdict: verdicts.count(verdict) for verdict in _VERDICTS} if verdicts else {},
        "answer": textwrap.shorten(answer, 120, placeholder=" …"),
        "reason": None,
    }
