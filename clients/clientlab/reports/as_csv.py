"""A run as CSV: a row a trial, for a spreadsheet or a data frame. Units stand in the columns' names.

The plain fields of a trial have the names of the run document (docs/run.schema.json says what they hold).
"""

from __future__ import annotations

import csv
import io
import json
from typing import Any

from clientlab.runs.document import Quantiles, Run, ServerUse, Trial

_PARTS = ("errors", "error_examples", "latency_seconds", "overhead_seconds", "histogram", "over_time", "busy")
_SERVERS = {"upstream": "upstream_use", "proxy": "proxy_use"}
_PLAIN = {
    name: field.description or name.replace("_", " ")
    for name, field in Trial.model_fields.items()
    if name not in {*_PARTS, *_SERVERS.values()}
}
"""Fields of a trial that are one value, with what they hold."""


def columns() -> dict[str, str]:
    """Every column with what it holds, in the order of the file."""
    return {
        "run": "the run's name",
        **_PLAIN,
        "errors": "failed requests",
        "errors_by_kind": "JSON, kind to count",
        "axes": "JSON, the arm's place on the experiment's axes",
        **{f"latency_{name}_seconds": "of successful requests" for name in Quantiles.model_fields},
        **{f"overhead_{name}_seconds": "latency less the delay asked for" for name in Quantiles.model_fields},
        **{f"{part}_{name}": f"of the {part}" for part in _SERVERS for name in ServerUse.model_fields},
        **{f"{part}_busy_share": "of its time" for part in ("client", "proxy", "upstream", "latency")},
    }


def render(run: Run) -> str:
    """The rows, after one of names; empty where a trial has no such figure."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(columns()), lineterminator="\n")
    writer.writeheader()
    axes = {arm.name: arm.axes for arm in run.experiment.arms}
    for trial in run.trials:
        writer.writerow({"run": run.run, **_row(trial), "axes": json.dumps(axes.get(trial.arm, {}))})
    return text.getvalue()


def _row(trial: Trial) -> dict[str, Any]:
    row = {name: getattr(trial, name) for name in _PLAIN}
    row |= {"errors": sum(trial.errors.values()), "errors_by_kind": json.dumps(trial.errors)}
    for name in Quantiles.model_fields:
        row[f"latency_{name}_seconds"] = _of(trial.latency_seconds, name)
        row[f"overhead_{name}_seconds"] = _of(trial.overhead_seconds, name)
    for part, field in _SERVERS.items():
        row |= {f"{part}_{name}": _of(getattr(trial, field), name) for name in ServerUse.model_fields}
    return row | {f"{part}_busy_share": share for part, share in trial.busy.items()}


def _of(found: Quantiles | ServerUse | None, name: str) -> float | None:
    return None if found is None else getattr(found, name)
