"""A run as CSV: one row per trial, for a spreadsheet or a data frame. The columns' names contain the units.

The plain fields of a trial have the names of the run document, figures their full names.
"""

from __future__ import annotations

import csv
import io
import json
from typing import Any

from clientlab.results.bottleneck import BUSY_PARTS, InFlight
from clientlab.results.document import Run
from clientlab.results.figures import FIGURES
from clientlab.results.server_counters import OF_LINK, ServerUse
from clientlab.results.trial import Noise, Quantiles, Trial, quantile_of

_PARTS = (
    "errors", "error_examples", "latency_seconds", "overhead_seconds", "histogram", "failed_histogram", "over_time",
    "busy", "in_flight", "noise", "open_load", "highest_rate", "link", "link_use", "clock", "by_shard",
)  # fmt: skip
_QUANTILES = tuple(name for name in Quantiles.model_fields if name != "at_least")
_SERVERS = {"upstream": "upstream_use", "proxy": "proxy_use"}
_OF_SERVERS = [name for name in ServerUse.model_fields if name not in OF_LINK]
_PLAIN = {
    name: field.description or name.replace("_", " ")
    for name, field in Trial.model_fields.items()
    if name not in {*_PARTS, *_SERVERS.values()}
}
"""Fields of a trial with a single value → description."""


_DOCUMENT = {
    "run": "the run's name",
    **_PLAIN,
    "errors": "failed requests",
    "errors_by_kind": "JSON, kind to count",
    "axes": "JSON, the arm's values on the experiment's axes",
    **{f"latency_{name}_seconds": "of all requests" for name in _QUANTILES},
    "latency_at_least": "JSON, those of the latencies that are only lower bounds, because requests failed",
    **{
        f"overhead_{name}_seconds": "latency less the requested delay and one round trip of the link"
        for name in _QUANTILES
    },
    "overhead_at_least": "JSON, those of the overheads that are only lower bounds",
    **{f"{part}_{name}": f"of the {part}" for part in _SERVERS for name in _OF_SERVERS},
    "link_rtt_seconds": "round-trip time of the link; empty without a link",
    "link_bandwidth_bits_per_second": "of the link, in each direction; empty without a limit",
    "link_cpu_seconds": "of the link's process",
    **{f"link_{name}": str(ServerUse.model_fields[name].description) for name in OF_LINK},
    "shards": "processes or workers that divided the trial; 1: it was not divided",
    "start_spread_seconds": "from the start of the first shard to that of the last",
    **{f"noise_{name}": field.description or name for name, field in Noise.model_fields.items()},
    **{f"{part}_busy_share": text for part, text in BUSY_PARTS.items()},
    **{f"{part}_in_flight": f"mean requests {field.description}" for part, field in InFlight.model_fields.items()},
}

_DERIVED = tuple(figure for figure in FIGURES if figure.name not in _DOCUMENT)
"""Figures that are computed from a trial."""


def columns() -> dict[str, str]:
    """Every column with its description, in the order of the file: fields of the run document, then other figures."""
    return _DOCUMENT | {figure.name: figure.description for figure in _DERIVED}


def render(run: Run) -> str:
    """A head, and a row for each trial, those of a search first. The cell of an unknown is empty."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(columns()), lineterminator="\n")
    writer.writeheader()
    axes = {arm.name: arm.axes for arm in run.experiment.arms}
    for trial in run.every_trial:
        row = {"run": run.run, **_row(trial), "axes": json.dumps(axes.get(trial.arm, {}))}
        writer.writerow({name: _no_formula(value) for name, value in row.items()})
    return text.getvalue()


def _no_formula(value: object) -> object:
    """The value of a cell. A spreadsheet would compute a text that begins like a formula: it gets an apostrophe."""
    return f"'{value}" if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t")) else value


def _row(trial: Trial) -> dict[str, Any]:
    row = {name: getattr(trial, name) for name in _PLAIN}
    row |= {"errors": sum(trial.errors.values()), "errors_by_kind": json.dumps(trial.errors)}
    for part, found in (("latency", trial.latency_seconds), ("overhead", trial.overhead_seconds)):
        row |= {f"{part}_{name}_seconds": quantile_of(found, name) for name in _QUANTILES}
        bounds = trial.bounds(found)
        row[f"{part}_at_least"] = json.dumps([name for name in _QUANTILES if name in bounds])
    for part, field in _SERVERS.items():
        row |= {f"{part}_{name}": _of(getattr(trial, field), name) for name in _OF_SERVERS}
    row["shards"] = max(1, len(trial.by_shard))
    row["start_spread_seconds"] = max((shard.began_seconds for shard in trial.by_shard), default=None)
    row |= {f"link_{name}": _of(trial.link_use, name) for name in ("cpu_seconds", *OF_LINK)}
    if trial.link is not None:
        row |= {"link_rtt_seconds": trial.link.rtt, "link_bandwidth_bits_per_second": trial.link.bandwidth}
    row |= {f"noise_{name}": _of(trial.noise, name) for name in Noise.model_fields}
    row |= {f"{part}_busy_share": share for part, share in trial.busy.items() if part in BUSY_PARTS}
    row |= {f"{part}_in_flight": _of(trial.in_flight, part) for part in InFlight.model_fields}
    return row | {figure.name: figure.of(trial) for figure in _DERIVED}


def _of(found: ServerUse | Noise | InFlight | None, name: str) -> float | None:
    return None if found is None else getattr(found, name)
