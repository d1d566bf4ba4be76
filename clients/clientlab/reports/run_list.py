"""The runs of a results folder, one row per run."""

from __future__ import annotations

from typing import Any

from rich.table import Table
from rich.text import Text

from clientlab import units
from clientlab.errors import LabError
from clientlab.judging.judgement import read_judged
from clientlab.results.document import Run
from clientlab.results.store import RUN_FILE, Store

Rows = list[dict[str, Any]]
_VERDICTS = ("supported", "contradicted", "inconclusive")


def rows(store: Store) -> Rows:
    """Every run, the oldest first. A run that cannot be read has `status` ``unreadable`` and a `reason`."""
    return [_row(store, name) for name in store.names()]


def render(found: Rows) -> Table:
    """The rows as a table."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("run", no_wrap=True)
    for name in ("experiment", "when", "machine", "status", "trials", "claims"):
        table.add_column(name, overflow="fold", justify="right" if name == "trials" else "left")
    for row in found:
        claims = ", ".join(f"{count} {verdict}" for verdict, count in row["claims"].items() if count)
        failed = f" ({row['failed']} failed)" if row["failed"] else ""
        trials = None if row["trials"] is None else f"{row['trials']}{failed}"
        cells = (row["run"], row["experiment"], row["when"], row["machine"], row["reason"] or row["status"], trials)
        table.add_row(*(Text(cell or units.UNKNOWN) for cell in cells), claims)
    return table


def _row(store: Store, name: str) -> dict[str, Any]:
    try:
        return {"run": name, **_readable(read_judged(store.folder / name / RUN_FILE))}
    except LabError as error:
        nothing = dict.fromkeys(("experiment", "when", "machine", "trials", "failed"))
        return {"run": name, **nothing, "status": "unreadable", "claims": {}, "reason": f"unreadable: {error}"}


def _readable(run: Run) -> dict[str, Any]:
    verdicts: list[str] = [claim.verdict for claim in run.claims]
    return {
        "experiment": run.experiment.name,
        "when": run.created,
        "machine": f"{run.surroundings.host}, {run.surroundings.cpu_model}",
        "trials": run.measured,
        "failed": sum(trial.status != "done" for trial in run.trials),
        "status": run.status,
        "claims": {verdict: verdicts.count(verdict) for verdict in _VERDICTS} if verdicts else {},
        "reason": None,
    }
