"""A run as CSV: one row per trial, for a spreadsheet or a data frame.

The columns' names contain the units.

The columns are the fields of a trial and its parts that hold one value, and the figures
under their full names.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel

from clientlab.results.document import Run
from clientlab.results.figures import FIGURES
from clientlab.trial import result
from clientlab.trial.server_counters import OF_LINK, ServerUse

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
    "failed_histogram",
    "over_time",
    "open_load",
    "link",
    "began",
    "disturbance",
    "paths",
    "first_byte_seconds",
    "stream",
}
"""Fields of a trial and of its parts that are more than a single value, or that say
nothing outside the trial.
"""


def render(run: Run) -> str:
    """Return a head and a row per trial, those of a search first.

    Unknown values have empty cells.
    """
    axes = {arm.name: json.dumps(arm.axes) for arm in run.experiment.arms}
    rows = [
        {"run": run.run, **_row(trial), "axes": axes.get(trial.planned.arm, "{}")}
        for trial in run.every_trial
    ]
    text = io.StringIO()
    writer = csv.DictWriter(text, rows[0] if rows else ["run"], lineterminator="\n")
    writer.writeheader()
    writer.writerows(
        {name: _without_formula(value) for name, value in row.items()} for row in rows
    )
    return text.getvalue()


def _without_formula(value: object) -> object:
    """Put an apostrophe before a text that a spreadsheet would compute."""
    return (
        f"'{value}"
        if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t"))
        else value
    )


def _row(trial: result.Trial) -> dict[str, Any]:
    """Return the cells of a trial; every trial has the same columns."""
    planned, figures, measured, servers = (
        trial.planned,
        trial.figures,
        trial.measured,
        trial.servers,
    )
    shares, in_flight = (
        (trial.verdict.shares, trial.verdict.in_flight)
        if trial.verdict
        else (None, None)
    )
    quantiles = [name for name in result.Quantiles.model_fields if name != "at_least"]
    counters = [name for name in ServerUse.model_fields if name not in OF_LINK]
    models: tuple[type[BaseModel], ...] = (
        result.PlannedTrial,
        result.Trial,
        result.Outcome,
        result.RequestFigures,
    )
    row: dict[str, Any] = {}
    for part, model in zip((planned, trial, measured, figures), models, strict=True):
        row |= _cells(
            "{}", part, [name for name in model.model_fields if name not in _LEFT_OUT]
        )
    row |= {
        "slices": max(1, len(trial.measured.slices)) if trial.measured else None,
        "errors": figures.failed,
        "errors_by_kind": json.dumps(figures.errors),
        "verdict": trial.bound,
    }
    for kind in ("latency", "overhead", "first_byte"):
        found = getattr(figures, f"{kind}_seconds")
        row |= _cells(f"{kind}_{{}}_seconds", found, quantiles)
        row[f"{kind}_at_least"] = json.dumps([] if found is None else found.at_least)
    row |= {
        **_cells("upstream_{}", servers.upstream, counters),
        **_cells("proxy_{}", servers.proxy, counters),
        "link_rtt_seconds": planned.link and planned.link.rtt,
        "link_bandwidth_bits_per_second": planned.link and planned.link.bandwidth,
        **_cells("link_{}", servers.link, ["cpu_seconds", *OF_LINK]),
        "shards": max(1, len(trial.shards)),
        "start_spread_seconds": trial.start_spread,
        **_cells(
            "noise_{}",
            measured and measured.disturbance,
            result.Disturbance.model_fields,
        ),
        **_cells("{}_busy_share", shares, result.Shares.model_fields),
        **_cells("{}_in_flight", in_flight, result.InFlight.model_fields),
    }
    return row | {
        figure.name: figure.of(trial) for figure in FIGURES if figure.name not in row
    }


def _cells(column: str, part: BaseModel | None, names: Iterable[str]) -> dict[str, Any]:
    return {column.format(name): getattr(part, name, None) for name in names}
