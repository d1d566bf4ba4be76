"""A run as CSV: a row a trial, for a spreadsheet or a data frame. Units stand in the columns' names."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

from clientlab.runs.document import Quantiles, Run, ServerUse, Trial

_PLAIN = {
    "arm": "the experiment's arm",
    "strategy": "client and executor",
    "upstream": "what was called",
    "route": "how it was reached",
    "workload": "what was asked",
    "round": "from 1",
    "order": "place in the run, from 0",
    "status": "done or failed",
    "reason": "of a failed trial",
    "started": "UTC",
    "concurrency": "requests in flight at once, at most",
    "wall_seconds": "the whole trial, warm-up left out",
    "requests": "finished, errors included",
    "requests_per_second": "successful ones",
    "connections_opened": "by the client",
    "cpu_seconds": "of the client's processes",
    "peak_rss_bytes": "likewise, summed",
    "bytes_received": "bodies",
    "verdict": "what held it back",
}
_SERVERS = {"upstream": "upstream_use", "proxy": "proxy_use"}


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
