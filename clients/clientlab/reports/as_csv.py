"""A run as CSV: one row per trial, for a spreadsheet or a data frame.

The columns are the fields of a trial and its parts that hold one value, and the figures
under their full names. Names of columns contain the units.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable
from typing import Any

from clientlab.results import trial as record
from clientlab.results.document import Run
from clientlab.results.figures import FIGURES
from clientlab.results.server_counters import OF_LINK, ServerUse

_LEFT_OUT = {
    "planned",
    "figures",
    "measured",
    "servers",
    "highest_rate",
    "shards",
    "verdict",
    "errors",
    "error_examples",
    "latency_seconds",
    "overhead_seconds",
    "histogram",
    "over_time",
    "open_load",
    "link",
    "began",
    "disturbance",
    "paths",
    "first_byte_seconds",
    "stream",
}
"""Fields that hold more than a single value, or say nothing outside the trial."""


def render(run: Run) -> str:
    """Return a head and a row per trial, those of a search first.

    Unknown values have empty cells.
    """
    axes = {arm.name: json.dumps(arm.axes) for arm in run.experiment.arms}
    rows = [
        {
            "run": run.run,
            **_row(trial),
            "axes": axes.get(trial.planned.arm, "{}"),
        }
        for trial in run.every_trial
    ]
    text = io.StringIO()
    writer = csv.DictWriter(
        text,
        rows[0] if rows else ["run"],
        lineterminator="\n",
    )
    writer.writeheader()
    writer.writerows(
        {name: _without_formula(value) for name, value in row.items()} for row in rows
    )
    return text.getvalue()


def _without_formula(value: object) -> object:
    """Put an apostrophe before a text that a spreadsheet would compute."""
    if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t")):
        return f"'{value}"
    return value


def _row(trial: record.Trial) -> dict[str, Any]:
    """Return the cells of a trial; every trial has the same columns."""
    planned = trial.planned
    figures = trial.figures
    measured = trial.measured
    servers = trial.servers
    verdict = trial.verdict
    row: dict[str, Any] = {}
    for part, model in (
        (planned, record.PlannedTrial),
        (trial, record.Trial),
        (measured, record.Outcome),
        (figures, record.RequestFigures),
    ):
        names = [name for name in model.model_fields if name not in _LEFT_OUT]
        row |= _cells("{}", part, names)
    row |= {
        "slices": max(1, len(measured.slices)) if measured else None,
        "errors": figures.failed,
        "errors_by_kind": json.dumps(figures.errors),
        "verdict": trial.bound,
    }
    quantiles = [name for name in record.Quantiles.model_fields if name != "at_least"]
    for kind in ("latency", "overhead", "first_byte"):
        found = getattr(figures, f"{kind}_seconds")
        row |= _cells(f"{kind}_{{}}_seconds", found, quantiles)
        row[f"{kind}_at_least"] = json.dumps(found.at_least if found else [])
    counters = [name for name in ServerUse.model_fields if name not in OF_LINK]
    row |= {
        **_cells("upstream_{}", servers.upstream, counters),
        **_cells("proxy_{}", servers.proxy, counters),
        **_cells("link_{}_seconds", planned.link, ["rtt"]),
        **_cells("link_{}_bits_per_second", planned.link, ["bandwidth"]),
        **_cells("link_{}", servers.link, ["cpu_seconds", *OF_LINK]),
        "shards": max(1, len(trial.shards)),
        "start_spread_seconds": trial.start_spread,
    }
    disturbance = measured.disturbance if measured else None
    row |= _cells("noise_{}", disturbance, record.Disturbance.model_fields)
    shares = verdict.shares if verdict else None
    row |= _cells("{}_busy_share", shares, record.Shares.model_fields)
    in_flight = verdict.in_flight if verdict else None
    row |= _cells("{}_in_flight", in_flight, record.InFlight.model_fields)
    return row | {
        figure.name: figure.of(trial) for figure in FIGURES if figure.name not in row
    }


def _cells(column: str, part: object, names: Iterable[str]) -> dict[str, Any]:
    return {column.format(name): getattr(part, name, None) for name in names}
