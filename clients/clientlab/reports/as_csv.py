"""A run as CSV: one row per trial, for a spreadsheet or a data frame. The columns' names contain the units.

Columns are the plain fields of a trial, what its parts hold, and the figures under their full names.
"""

from __future__ import annotations

import csv
import io
import json
from typing import Any

from pydantic import BaseModel

from clientlab.results.bottleneck import BUSY_PARTS, InFlight
from clientlab.results.document import Run
from clientlab.results.figures import FIGURES
from clientlab.results.server_counters import OF_LINK, ServerUse
from clientlab.results.trial import Noise, Quantiles, Trial, quantile_of

_PARTS = {
    "errors", "error_examples", "latency_seconds", "overhead_seconds", "histogram", "failed_histogram", "over_time",
    "busy", "in_flight", "noise", "open_load", "highest_rate", "link", "upstream_use", "proxy_use", "link_use", "clock",
    "by_shard",
}  # fmt: skip
"""Fields of a trial that are more than a single value."""

_QUANTILES = [name for name in Quantiles.model_fields if name != "at_least"]
_OF_SERVERS = [name for name in ServerUse.model_fields if name not in OF_LINK]


def render(run: Run) -> str:
    """Return a head, and a row for each trial, those of a search first. The cell of an unknown value is empty."""
    axes = {arm.name: arm.axes for arm in run.experiment.arms}
    rows = [{"run": run.run, **_row(trial), "axes": json.dumps(axes.get(trial.arm, {}))} for trial in run.every_trial]
    text = io.StringIO()
    writer = csv.DictWriter(text, rows[0] if rows else ["run"], lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: _without_formula(value) for name, value in row.items()})
    return text.getvalue()


def _without_formula(value: object) -> object:
    """Put an apostrophe before a text that a spreadsheet would compute."""
    return f"'{value}" if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t")) else value


def _row(trial: Trial) -> dict[str, Any]:
    """Return the cells of a trial; every trial has the same columns."""
    row = {name: getattr(trial, name) for name in Trial.model_fields if name not in _PARTS}
    row |= {"errors": sum(trial.errors.values()), "errors_by_kind": json.dumps(trial.errors)}
    for part, found in (("latency", trial.latency_seconds), ("overhead", trial.overhead_seconds)):
        row |= {f"{part}_{name}_seconds": quantile_of(found, name) for name in _QUANTILES}
        row[f"{part}_at_least"] = json.dumps([name for name in _QUANTILES if name in trial.bounds(found)])
    row |= _fields("upstream_{}", trial.upstream_use, _OF_SERVERS) | _fields("proxy_{}", trial.proxy_use, _OF_SERVERS)
    row |= {
        "link_rtt_seconds": trial.link and trial.link.rtt,
        "link_bandwidth_bits_per_second": trial.link and trial.link.bandwidth,
        **_fields("link_{}", trial.link_use, ["cpu_seconds", *OF_LINK]),
        "shards": max(1, len(trial.by_shard)),
        "start_spread_seconds": max((shard.began_seconds for shard in trial.by_shard), default=None),
        **_fields("noise_{}", trial.noise, list(Noise.model_fields)),
        **{f"{part}_busy_share": trial.busy.get(part) for part in BUSY_PARTS},
        **_fields("{}_in_flight", trial.in_flight, list(InFlight.model_fields)),
    }
    return row | {figure.name: figure.of(trial) for figure in FIGURES if figure.name not in row}


def _fields(column: str, part: BaseModel | None, names: list[str]) -> dict[str, Any]:
    return {column.format(name): getattr(part, name, None) for name in names}
