"""A run as metrics: what dashboards compare runs by. All figures are medians over rounds of the run file."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from statistics import median

from prometheus_client.core import GaugeMetricFamily

from clientlab.analysis.ratios import paired_ratio
from clientlab.runs.document import Arm, Run, Trial
from clientlab.runs.expansion import curve_of
from clientlab.runs.labels import ARM, legend, of_arm

MOST_SERIES = 3000
Families = dict[str, GaugeMetricFamily]
_QUANTILES = {"0.5": "p50", "0.95": "p95", "0.99": "p99"}


def families(stem: str = "run") -> Families:
    """Every metric of a run, still empty; `stem`: ``run`` for those that have ended, ``present`` for the last begun."""
    rows: Iterable[tuple[str, str, tuple[str, ...]]] = (
        ("info", "A run.", ("run", "experiment", "machine", "python", "surroundings")),
        ("created_timestamp_seconds", "When the run began.", ("run",)),
        ("requests_per_second", "Successful requests a second.", ARM),
        ("wall_seconds", "Wall time of a trial.", ARM),
        ("wall_seconds_low", "Lower end of the 95 % interval of the trials' geometric mean.", ARM),
        ("wall_seconds_high", "Upper end of it.", ARM),
        ("latency_seconds", "Exact quantiles of successful requests.", (*ARM, "quantile")),
        ("overhead_seconds", "Median latency minus the delay asked for.", ARM),
        ("cpu_seconds_per_request", "CPU time of the client's processes for a request.", ARM),
        ("peak_memory_bytes", "Peak memory of the client's processes.", ARM),
        ("connections_opened", "Connections opened in a trial.", ARM),
        ("errors", "Failed requests, all rounds.", ARM),
        ("verdict", "1 for what held most of its trials back.", (*ARM, "verdict")),
        ("axis_value", "An arm's place on an axis of its experiment.", (*ARM, "axis", "curve")),
        ("claim", "b's figure over a's of a claim; NaN where it has none.", ("run", "experiment", "claim", "verdict")),
    )
    return {name: GaugeMetricFamily(f"clientlab_{stem}_{name}", says, labels=labels) for name, says, labels in rows}


def fill(into: Families, run: Run) -> bool:
    """Add a run; whether its arms are among it: those of a run of more than 3,000 series are left out."""
    machine = run.surroundings
    where = f"{machine.cpu_model}, {machine.cpu_usable:g} cores"
    into["info"].add_metric([run.run, run.experiment.name, where, machine.python, surroundings_hash(run)], 1)
    into["created_timestamp_seconds"].add_metric([run.run], datetime.fromisoformat(run.created).timestamp())
    for claim in run.claims:
        ratio = math.nan if claim.ratio is None else claim.ratio
        into["claim"].add_metric([run.run, run.experiment.name, claim.name, claim.verdict], ratio)
    rows = [row for arm in run.experiment.arms for row in _of_arm(run, arm)]
    if len(rows) + len(run.claims) + 2 > MOST_SERIES:
        return False
    for name, labels, value in rows:
        into[name].add_metric(labels, value)
    return True


def surroundings_hash(run: Run) -> str:
    """Equal for runs whose figures may be compared: machine, limits, versions, servers.

    Not the load of the hour, nor the host's name, which is a new one for each container.
    """
    machine = run.surroundings.model_dump(exclude={"load_average", "host"})
    return hashlib.sha256(json.dumps(machine, sort_keys=True).encode()).hexdigest()[:8]


def _of_arm(run: Run, arm: Arm) -> Iterator[tuple[str, list[str], float]]:
    trials = [trial for trial in run.trials if trial.arm == arm.name and trial.status == "done"]
    if not trials:
        return
    labels = of_arm(run.run, run.experiment.name, arm.name, arm)

    def row(name: str, value: float, *more: str) -> tuple[str, list[str], float]:
        return name, [*labels, *more], value

    for name, value in _medians(trials):
        yield row(name, value)
    walls = {trial.round: trial.wall_seconds for trial in trials if trial.wall_seconds}
    mean = paired_ratio(walls, dict.fromkeys(walls, 1.0))
    if mean is not None and mean.low is not None and mean.high is not None:
        yield row("wall_seconds_low", mean.low)
        yield row("wall_seconds_high", mean.high)
    latencies = [trial.latency_seconds for trial in trials if trial.latency_seconds]
    for quantile, field in _QUANTILES.items():
        if latencies:
            yield row("latency_seconds", median(getattr(latency, field) for latency in latencies), quantile)
    overheads = [trial.overhead_seconds.p50 for trial in trials if trial.overhead_seconds]
    if overheads:
        yield row("overhead_seconds", median(overheads))
    yield row("errors", sum(sum(trial.errors.values()) for trial in trials))
    verdicts = [str(trial.verdict or "unclear") for trial in trials]
    yield row("verdict", 1, max(dict.fromkeys(verdicts), key=verdicts.count))
    for axis, place in arm.axes.items():
        if isinstance(place, int | float):
            yield row("axis_value", place, axis, legend(curve_of(arm, axis), arm.strategy))


def _medians(trials: list[Trial]) -> Iterator[tuple[str, float]]:
    for name, figure in _FIGURES.items():
        known = [found for trial in trials if (found := figure(trial)) is not None]
        if known:
            yield name, float(median(known))


def _cpu_per_request(trial: Trial) -> float | None:
    return None if trial.cpu_seconds is None or not trial.requests else trial.cpu_seconds / trial.requests


_FIGURES: dict[str, Callable[[Trial], float | None]] = {
    "requests_per_second": lambda trial: trial.requests_per_second,
    "wall_seconds": lambda trial: trial.wall_seconds,
    "cpu_seconds_per_request": _cpu_per_request,
    "peak_memory_bytes": lambda trial: trial.peak_rss_bytes,
    "connections_opened": lambda trial: trial.connections_opened,
}
"""Medians over the trials that know them: what nobody knows is no 0, and has no sample."""
