"""What runs are compared by and thresholds are about: read off a trial, with what is better, less of it or more."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from clientlab.errors import LabError
from clientlab.runs.document import Quantiles, Trial

Unit = Literal["seconds", "per-second", "bytes", "count", "share"]

_HISTOGRAM_STEP = 1e-3  # three significant digits


@dataclass(frozen=True)
class Quantity:
    """A figure of a trial: `of` gives it in `unit`, or None where the trial has none.

    `better`, `worse`: what a change of it is called. `step`: its resolution, as a share.
    """

    name: str
    says: str
    unit: Unit
    of: Callable[[Trial], float | None]
    better: str
    worse: str
    less_is_better: bool = True
    step: float = 0.0


def _latency(name: str, says: str, of: Callable[[Quantiles], float]) -> Quantity:
    def read(trial: Trial) -> float | None:
        return None if trial.latency_seconds is None else of(trial.latency_seconds)

    return Quantity(name, says, "seconds", read, "faster", "slower", step=_HISTOGRAM_STEP)


def _cpu(trial: Trial) -> float | None:
    return None if trial.cpu_seconds is None else trial.cpu_seconds / max(1, trial.requests)


def _errors(trial: Trial) -> float:
    return sum(trial.errors.values()) / max(1, trial.requests)


def _overhead(trial: Trial) -> float | None:
    return None if trial.overhead_seconds is None else trial.overhead_seconds.p50


QUANTITIES = {
    row.name: row
    for row in (
        Quantity("wall", "wall time", "seconds", lambda trial: trial.wall_seconds, "faster", "slower"),
        Quantity(
            "throughput", "requests a second", "per-second", lambda trial: trial.requests_per_second,
            "faster", "slower", less_is_better=False,
        ),
        _latency("p50", "median latency", lambda latency: latency.p50),
        _latency("p99", "99th percentile of latency", lambda latency: latency.p99),
        Quantity("cpu", "CPU time a request", "seconds", _cpu, "less", "more"),
        Quantity("memory", "peak memory", "bytes", lambda trial: trial.peak_rss_bytes, "less", "more"),
        Quantity("connections", "connections opened", "count", lambda trial: trial.connections_opened, "fewer", "more"),
        Quantity("errors", "share of failed requests", "share", _errors, "fewer", "more"),
        _latency("mean", "mean latency", lambda latency: latency.mean),
        _latency("p90", "90th percentile of latency", lambda latency: latency.p90),
        _latency("p95", "95th percentile of latency", lambda latency: latency.p95),
        _latency("p999", "99.9th percentile of latency", lambda latency: latency.p999),
        _latency("max", "longest latency", lambda latency: latency.max),
        Quantity("overhead", "median of latency less the delay asked for", "seconds", _overhead, "less", "more"),
    )
}  # fmt: skip
"""All of them; the first eight are what `compare` shows."""

COMPARED = tuple(QUANTITIES)[:8]


def figures_of(about: Quantity, trials: Iterable[Trial]) -> list[float]:
    """The figures of the finished trials that have one; of errors those of failed trials as well that sent requests.

    A trial of which every request failed has nothing else to tell.
    """
    told = [trial for trial in trials if trial.status == "done" or (about.unit == "share" and trial.requests)]
    return [value for trial in told if (value := about.of(trial)) is not None]


def quantity(name: str, where: str) -> Quantity:
    """The quantity of that name. Raises LabError with those there are; `where` it was written."""
    if name not in QUANTITIES:
        raise LabError(f"{where}: {name!r} is not one of {', '.join(QUANTITIES)}")
    return QUANTITIES[name]
