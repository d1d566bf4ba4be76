"""The list of figures: each is defined once, and read by tables, charts, metrics and claims.

A figure is a number of one finished trial. A new one is an entry of `FIGURES`, and what measures it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from clientlab.analysis.latencies import FEWEST_REQUESTS
from clientlab.errors import FieldError
from clientlab.results.figure_definition import (
    FASTER,
    FEWER,
    LESS,
    MORE,
    RESOLUTION,
    Column,
    Direction,
    Figure,
    Metric,
)
from clientlab.results.trial import Quantiles, Trial, quantile_of

_NAMES = {"sent_seconds": "latency_from_send", "lateness_seconds": "lateness"}


def _quantile(key: str, label: str, text: str, place: tuple[str, str], **shown: Any) -> Figure:
    """`place`: a field of `OpenLoad`, and one of its `Quantiles`."""
    part, quantile = place
    name = f"{_NAMES[part]}_{quantile}_seconds"

    def quantiles(trial: Trial) -> Quantiles | None:
        return None if trial.open_load is None else getattr(trial.open_load, part)

    def of(trial: Trial) -> float | None:
        return quantile_of(quantiles(trial), quantile)

    def bounded(trial: Trial) -> bool:
        return quantile in trial.bounds(quantiles(trial))

    text = f"open load: {text}"
    return Figure(key, name, label, text, "seconds", of, FASTER, resolution=RESOLUTION, bounded=bounded, **shown)


def _field(name: str) -> Callable[[Trial], float | None]:
    return lambda trial: None if trial.open_load is None else getattr(trial.open_load, name)


def _dropped(trial: Trial) -> float | None:
    return None if trial.open_load is None or not trial.requests else trial.open_load.dropped / trial.requests


OPEN_LOAD_FIGURES: tuple[Figure, ...] = (
    _quantile(
        "sent_p50", "median latency from the real start",
        "median latency from the moment of sending",
        ("sent_seconds", "p50"),
    ),
    _quantile(
        "sent_p99", "99th percentile of latency from the real start",
        "99th percentile of latency from the moment of sending",
        ("sent_seconds", "p99"), column=Column("p99 sent", "known"),
    ),
    _quantile(
        "late_p50", "median lateness",
        "median delay between the planned start and sending; dropped requests count as later",
        ("lateness_seconds", "p50"), before_send=True,
        column=Column("late p50", "known"), metric=Metric("lateness_seconds", "0.5"),
    ),
    _quantile(
        "late_p99", "99th percentile of lateness",
        "99th percentile of the delay between the planned start and sending",
        ("lateness_seconds", "p99"), before_send=True,
        column=Column("late p99", "known"), metric=Metric("lateness_seconds", "0.99"),
    ),
    Figure(
        "planned_rate", "planned_requests_per_second", "planned rate",
        "open load: planned requests per second of the schedule",
        "per-second", _field("planned_per_second"), MORE,
        column=Column("planned/s", "known"), metric=Metric("planned_requests_per_second"), claimable=False,
    ),
    Figure(
        "achieved_rate", "achieved_requests_per_second", "achieved rate",
        "open load: requests sent per second, until the schedule ended or the last one was sent",
        "per-second", _field("achieved_per_second"), MORE,
        column=Column("achieved/s", "known"), metric=Metric("achieved_requests_per_second"),
    ),
    Figure(
        "backlog", "backlog_requests", "largest backlog",
        "open load: the most requests that were due at once, and neither sent nor dropped",
        "count", _field("most_backlog"), FEWER,
        column=Column("backlog", "known"), metric=Metric("backlog_requests"),
    ),
    Figure(
        "dropped", "dropped_share", "share of dropped requests",
        "open load: share of requests that were too late to send",
        "share", _dropped, FEWER,
        column=Column("dropped", "known"), metric=Metric("dropped_share"), claimable=False,
    ),
)  # fmt: skip


def _latency(key: str, label: str, **shown: Any) -> Figure:
    """A figure of all requests; `key` is its field of `Quantiles`."""

    def of(trial: Trial) -> float | None:
        return quantile_of(trial.latency_seconds, key)

    def bounded(trial: Trial) -> bool:
        return key in trial.bounds(trial.latency_seconds)

    text = label
    if least := FEWEST_REQUESTS.get(key):
        text += f"; needs at least {least:,} requests"
    name = f"latency_{key}_seconds"
    return Figure(key, name, label, text, "seconds", of, FASTER, resolution=RESOLUTION, bounded=bounded, **shown)


def _seconds_per_request(trial: Trial) -> float | None:
    successful = trial.requests - sum(trial.errors.values())
    return _seconds_at_rate(trial) / successful if successful > 0 and trial.wall_seconds else None


def _seconds_at_rate(trial: Trial) -> float:
    """Seconds that the requests of a finished trial take at its rate: its wall time, unless it has a tail."""
    if trial.tail_seconds is None or not trial.requests_per_second:
        return trial.wall_seconds or 0.0
    return (trial.requests - sum(trial.errors.values())) / trial.requests_per_second


def _per_request(count: float | None, trial: Trial) -> float | None:
    return None if count is None or not trial.requests else count / trial.requests


def _cpu_per_request(trial: Trial) -> float | None:
    """For a successful request, as in throughput: requests that fail fast must not make the others look cheap."""
    succeeded = trial.requests - sum(trial.errors.values())
    return None if trial.cpu_seconds is None or succeeded <= 0 else trial.cpu_seconds / succeeded


def _received(trial: Trial) -> float | None:
    if trial.bytes_received is None or not trial.wall_seconds:
        return None
    return trial.bytes_received / _seconds_at_rate(trial)


def _above_idle(trial: Trial) -> float | None:
    if trial.peak_pss_bytes is None or trial.idle_pss_bytes is None:
        return None
    return max(0, trial.peak_pss_bytes - trial.idle_pss_bytes)


HIGHEST_RATE = Figure(
    "highest_rate", "highest_requests_per_second", "highest rate",
    "the highest rate that kept the limits of `--find-max`",
    "per-second", lambda trial: None if trial.highest_rate is None else trial.highest_rate.middle,
    Direction("higher", "lower", less_is_better=False), column=Column("highest rate", "known"),
)  # fmt: skip

FIGURES: tuple[Figure, ...] = (
    HIGHEST_RATE,
    Figure(
        "wall", "wall_seconds", "wall time",
        "time from the start of the first request to the end of the last",
        "seconds", lambda trial: trial.wall_seconds, FASTER,
        column=Column("wall"), metric=Metric("wall_seconds"), compared=True, total=True, scheduled=True,
    ),
    Figure(
        "throughput", "requests_per_second", "requests per second",
        "successful requests per second, without the tail",
        "per-second", lambda trial: trial.requests_per_second, Direction("faster", "slower", less_is_better=False),
        column=Column("req/s"), metric=Metric("requests_per_second"), compared=True, scheduled=True,
    ),
    Figure(
        "time_per_request", "seconds_per_request", "time per request",
        "inverse of requests per second; ranks the arms of a closed load",
        "seconds", _seconds_per_request, FASTER, scheduled=True,
    ),
    Figure(
        "received", "bytes_received_per_second", "bytes received per second",
        "bytes of response bodies per second, without the tail",
        "bytes-per-second", _received, Direction("faster", "slower", less_is_better=False),
        column=Column("received", "large bodies"), metric=Metric("bytes_received_per_second"), compared=True,
        scheduled=True,
    ),
    Figure(
        "tail", "tail_seconds", "tail",
        "time from the end of the duration, or of the first shard, to the last response",
        "seconds", lambda trial: trial.tail_seconds, FASTER,
        column=Column("tail", "known"), claimable=False, scheduled=True,
    ),
    _latency("mean", "mean latency"),
    _latency("p50", "median latency", column=Column("p50"), metric=Metric("latency_seconds", "0.5"), compared=True),
    _latency("p90", "90th percentile of latency"),
    _latency("p95", "95th percentile of latency", metric=Metric("latency_seconds", "0.95")),
    _latency(
        "p99", "99th percentile of latency",
        column=Column("p99"), metric=Metric("latency_seconds", "0.99"), compared=True,
    ),
    _latency("p999", "99.9th percentile of latency"),
    _latency("max", "longest latency"),
    *OPEN_LOAD_FIGURES,
    Figure(
        "overhead", "overhead_p50_seconds", "median overhead",
        "median of latency minus the requested delay and one round trip of the link",
        "seconds", lambda trial: quantile_of(trial.overhead_seconds, "p50"), LESS,
        bounded=lambda trial: "p50" in trial.bounds(trial.overhead_seconds),
        column=Column("overhead", "known"), metric=Metric("overhead_seconds"), needs="delay",
    ),
    Figure(
        "elapsed", "elapsed_seconds_sum", "summed elapsed",
        "sum of the times that the library itself reports for successful requests",
        "seconds", lambda trial: trial.elapsed_seconds_sum, LESS,
        column=Column("own elapsed", "known"), total=True, needs="elapsed",
    ),
    Figure(
        "errors", "errors_share", "share of failed requests",
        "share of finished requests that failed; failed trials count, partial ones do not",
        "share", lambda trial: _per_request(sum(trial.errors.values()), trial), FEWER,
        column=Column("errors"), compared=True, claimable=False, of_failed=True,
    ),
    Figure(
        "connections", "connections_opened", "connections opened",
        "connections that the client opened",
        "count", lambda trial: trial.connections_opened, FEWER,
        column=Column("conns"), metric=Metric("connections_opened"), cost=True, compared=True,
    ),
    Figure(
        "reuse", "requests_per_connection", "requests per connection",
        "finished requests divided by the connections opened",
        "count", lambda trial: trial.requests / trial.connections_opened if trial.connections_opened else None, MORE,
        column=Column("req/conn", "durations"), metric=Metric("requests_per_connection"),
    ),
    Figure(
        "cpu", "cpu_seconds_per_request", "CPU time per request",
        "CPU time of the client's processes per successful request",
        "seconds", _cpu_per_request, LESS,
        column=Column("CPU/req"), metric=Metric("cpu_seconds_per_request"), cost=True, compared=True,
    ),
    Figure(
        "cpu_wait", "cpu_wait_seconds_per_request", "wait for a CPU per request",
        "time per request in which the client's threads could run but had no CPU (Linux run delay)",
        "seconds", lambda trial: _per_request(trial.noise.run_delay_seconds, trial) if trial.noise else None, LESS,
    ),
    Figure(
        "cpu_total", "cpu_seconds", "CPU time",
        "CPU time of the client's processes",
        "seconds", lambda trial: trial.cpu_seconds, LESS, total=True,
    ),
    Figure(
        "memory", "peak_pss_bytes", "peak memory",
        "peak memory (PSS), summed over the client's processes, without the sample log",
        "bytes", lambda trial: trial.peak_pss_bytes, LESS,
        column=Column("memory", "known"), metric=Metric("peak_memory_bytes"), cost=True, compared=True,
    ),
    Figure(
        "rss", "peak_rss_bytes", "peak RSS",
        "peak resident memory, summed over the client's processes, with the sample log",
        "bytes", lambda trial: trial.peak_rss_bytes, LESS,
        metric=Metric("peak_rss_bytes"),
    ),
    Figure(
        "above_idle", "above_idle_bytes", "memory above idle",
        "peak memory minus the memory after the warm-up (PSS)",
        "bytes", _above_idle, LESS,
        column=Column("above idle", "large bodies"), cost=True,
    ),
)  # fmt: skip
"""Every figure, in the order of tables and comparisons."""

BY_KEY = {figure.key: figure for figure in FIGURES}
EXPORTED = tuple((figure, figure.metric) for figure in FIGURES if figure.metric is not None)
COMPARED = tuple(figure for figure in FIGURES if figure.compared)
_BY_NAME = {name: figure for figure in FIGURES for name in (figure.key, figure.name)}


def ranked_by(*, open_load: bool) -> Figure:
    """The figure that arms are ranked by: time per request in a closed load, and p99 in an open load.

    The schedule of an open load decides its wall time. Its p99 is that from the planned start.
    """
    return BY_KEY["p99" if open_load else "time_per_request"]


def cost_of(trial: Trial) -> float:
    """The figure of a finished trial that its arm is ranked by, in seconds; of a search, those per request."""
    if trial.highest_rate is not None:
        return 1 / trial.highest_rate.middle
    return ranked_by(open_load=trial.open_load is not None).of(trial) or 0.0


def find(name: str, field: str, value: str = "") -> Figure:
    """The figure of that key or full name. Raises FieldError, which lists the keys, for a `field` of that `value`."""
    if name not in _BY_NAME:
        raise FieldError([field], f"{name!r} is not one of {', '.join(one.key for one in FIGURES)}", value=value)
    return _BY_NAME[name]


def of_claim(name: str) -> Figure:
    """The figure with that key or full name, if a claim may compare it. Raises ValueError, which lists the keys."""
    figure = _BY_NAME.get(name)
    if figure is None or not figure.claimable:
        raise ValueError(f"{name!r} is not one of {', '.join(one.key for one in FIGURES if one.claimable)}")
    return figure
