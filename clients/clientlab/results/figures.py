"""The list of figures: each is defined once, and read by tables, charts, metrics and claims.

A figure is a number of one finished trial. A new one is an entry of `FIGURES`, and what measures it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from clientlab.errors import FieldError
from clientlab.results.figure_definition import FASTER, FEWER, LESS, MORE, RESOLUTION, Column, Direction, Figure, Metric
from clientlab.results.trial import OpenLoad, Quantiles, Trial, quantile_of


def _quantile(of: Callable[[Trial], Quantiles | None], name: str, **shown: Any) -> dict[str, Any]:
    """Return the fields of a figure that is one of a trial's quantiles."""
    return {
        "unit": "seconds",
        "of": lambda trial: quantile_of(of(trial), name),
        "bounded": lambda trial: name in trial.bounds(of(trial)),
        "direction": FASTER,
        "resolution": RESOLUTION,
    } | shown


def _latency(key: str, label: str, more: str = "", **shown: Any) -> Figure:
    """Return the figure of a quantile of latency."""
    quantile = _quantile(lambda trial: trial.latency_seconds, key, **shown)
    return Figure(key, f"latency_{key}_seconds", label, label + more, **quantile)


def _sent(trial: Trial) -> Quantiles | None:
    return None if trial.open_load is None else trial.open_load.sent_seconds


def _late(trial: Trial) -> Quantiles | None:
    return None if trial.open_load is None else trial.open_load.lateness_seconds


def _load(of: Callable[[OpenLoad], float]) -> Callable[[Trial], float | None]:
    return lambda trial: None if trial.open_load is None else of(trial.open_load)


def _dropped(trial: Trial) -> float | None:
    return None if trial.open_load is None or not trial.requests else trial.open_load.dropped / trial.requests


OPEN_LOAD_FIGURES: tuple[Figure, ...] = (
    Figure("sent_p50", "latency_from_send_p50_seconds", "median latency from the real start",
           "open load: median latency from the moment of sending",
           **_quantile(_sent, "p50")),
    Figure("sent_p99", "latency_from_send_p99_seconds", "99th percentile of latency from the real start",
           "open load: 99th percentile of latency from the moment of sending",
           **_quantile(_sent, "p99", column=Column("p99 sent", "known"))),
    Figure("late_p50", "lateness_p50_seconds", "median lateness",
           "open load: median delay between the planned start and sending; dropped requests count as later",
           **_quantile(_late, "p50", column=Column("late p50", "known"), metric=Metric("lateness_seconds", "0.5"),
                       before_send=True)),
    Figure("late_p99", "lateness_p99_seconds", "99th percentile of lateness",
           "open load: 99th percentile of the delay between the planned start and sending",
           **_quantile(_late, "p99", column=Column("late p99", "known"), metric=Metric("lateness_seconds", "0.99"),
                       before_send=True)),
    Figure("planned_rate", "planned_requests_per_second", "planned rate",
           "open load: planned requests per second of the schedule",
           "per-second", _load(lambda load: load.planned_per_second), MORE, column=Column("planned/s", "known"),
           metric=Metric("planned_requests_per_second"), claimable=False),
    Figure("achieved_rate", "achieved_requests_per_second", "achieved rate",
           "open load: requests sent per second, until the schedule ended or the last one was sent",
           "per-second", _load(lambda load: load.achieved_per_second), MORE, column=Column("achieved/s", "known"),
           metric=Metric("achieved_requests_per_second")),
    Figure("backlog", "backlog_requests", "largest backlog",
           "open load: the most requests that were due at once, and neither sent nor dropped",
           "count", _load(lambda load: load.most_backlog), FEWER, column=Column("backlog", "known"),
           metric=Metric("backlog_requests")),
    Figure("dropped", "dropped_share", "share of dropped requests",
           "open load: share of requests that were too late to send",
           "share", _dropped, FEWER, column=Column("dropped", "known"), metric=Metric("dropped_share"),
           claimable=False),
)  # fmt: skip


def _succeeded(trial: Trial) -> int:
    return trial.requests - sum(trial.errors.values())


def _seconds_at_rate(trial: Trial) -> float:
    """Return the seconds that the requests of a trial take at its rate: its wall time, unless it has a tail."""
    if trial.tail_seconds is None or not trial.requests_per_second:
        return trial.wall_seconds or 0.0
    return _succeeded(trial) / trial.requests_per_second


def _seconds_per_request(trial: Trial) -> float | None:
    return _seconds_at_rate(trial) / _succeeded(trial) if _succeeded(trial) > 0 and trial.wall_seconds else None


def _cpu_per_request(trial: Trial) -> float | None:
    """For a successful request, as in throughput: requests that fail fast must not make the others look cheap."""
    return None if trial.cpu_seconds is None or _succeeded(trial) <= 0 else trial.cpu_seconds / _succeeded(trial)


def _cpu_wait(trial: Trial) -> float | None:
    delay = None if trial.noise is None else trial.noise.run_delay_seconds
    return None if delay is None or not trial.requests else delay / trial.requests


def _received(trial: Trial) -> float | None:
    if trial.bytes_received is None or not trial.wall_seconds:
        return None
    return trial.bytes_received / _seconds_at_rate(trial)


def _above_idle(trial: Trial) -> float | None:
    if trial.peak_pss_bytes is None or trial.idle_pss_bytes is None:
        return None
    return max(0, trial.peak_pss_bytes - trial.idle_pss_bytes)


_FASTER_IF_MORE = Direction("faster", "slower", less_is_better=False)

HIGHEST_RATE = Figure(
    "highest_rate", "highest_requests_per_second", "highest rate",
    "the highest rate that kept the limits of `--find-max`",
    "per-second", lambda trial: None if trial.highest_rate is None else trial.highest_rate.middle,
    Direction("higher", "lower", less_is_better=False), column=Column("highest rate", "known"),
)  # fmt: skip

FIGURES: tuple[Figure, ...] = (
    HIGHEST_RATE,
    Figure("wall", "wall_seconds", "wall time", "time from the start of the first request to the end of the last",
           "seconds", lambda trial: trial.wall_seconds, FASTER, column=Column("wall"), metric=Metric("wall_seconds"),
           compared=True, total=True, scheduled=True),
    Figure("throughput", "requests_per_second", "requests per second",
           "successful requests per second, without the tail",
           "per-second", lambda trial: trial.requests_per_second, _FASTER_IF_MORE, column=Column("req/s"),
           metric=Metric("requests_per_second"), compared=True, scheduled=True),
    Figure("time_per_request", "seconds_per_request", "time per request",
           "inverse of requests per second; ranks the arms of a closed load",
           "seconds", _seconds_per_request, FASTER, scheduled=True),
    Figure("received", "bytes_received_per_second", "bytes received per second",
           "bytes of response bodies per second, without the tail",
           "bytes-per-second", _received, _FASTER_IF_MORE, column=Column("received", "large bodies"),
           metric=Metric("bytes_received_per_second"), compared=True, scheduled=True),
    Figure("tail", "tail_seconds", "tail",
           "time from the end of the duration, or of the first shard, to the last response",
           "seconds", lambda trial: trial.tail_seconds, FASTER, column=Column("tail", "known"), claimable=False,
           scheduled=True),
    _latency("mean", "mean latency"),
    _latency("p50", "median latency", column=Column("p50"), metric=Metric("latency_seconds", "0.5"), compared=True),
    _latency("p90", "90th percentile of latency"),
    _latency("p95", "95th percentile of latency", metric=Metric("latency_seconds", "0.95")),
    _latency("p99", "99th percentile of latency", column=Column("p99"), metric=Metric("latency_seconds", "0.99"),
             compared=True),
    _latency("p999", "99.9th percentile of latency", "; needs at least 1,000 requests"),
    _latency("max", "longest latency"),
    *OPEN_LOAD_FIGURES,
    Figure("overhead", "overhead_p50_seconds", "median overhead",
           "median of latency minus the requested delay and one round trip of the link",
           **_quantile(lambda trial: trial.overhead_seconds, "p50", direction=LESS, resolution=0.0, needs="delay",
                       column=Column("overhead", "known"), metric=Metric("overhead_seconds"))),
    Figure("elapsed", "elapsed_seconds_sum", "summed elapsed",
           "sum of the times that the library itself reports for successful requests",
           "seconds", lambda trial: trial.elapsed_seconds_sum, LESS, column=Column("own elapsed", "known"), total=True,
           needs="elapsed"),
    Figure("errors", "errors_share", "share of failed requests",
           "share of finished requests that failed; failed trials count, partial ones do not",
           "share", lambda trial: sum(trial.errors.values()) / trial.requests if trial.requests else None, FEWER,
           column=Column("errors"), compared=True, claimable=False, of_failed=True),
    Figure("connections", "connections_opened", "connections opened", "connections that the client opened",
           "count", lambda trial: trial.connections_opened, FEWER, column=Column("conns"),
           metric=Metric("connections_opened"), cost=True, compared=True),
    Figure("reuse", "requests_per_connection", "requests per connection",
           "finished requests divided by the connections opened",
           "count", lambda trial: trial.requests / trial.connections_opened if trial.connections_opened else None, MORE,
           column=Column("req/conn", "durations"), metric=Metric("requests_per_connection")),
    Figure("cpu", "cpu_seconds_per_request", "CPU time per request",
           "CPU time of the client's processes per successful request",
           "seconds", _cpu_per_request, LESS, column=Column("CPU/req"), metric=Metric("cpu_seconds_per_request"),
           cost=True, compared=True),
    Figure("cpu_wait", "cpu_wait_seconds_per_request", "wait for a CPU per request",
           "time per request in which the client's threads could run but had no CPU (Linux run delay)",
           "seconds", _cpu_wait, LESS),
    Figure("cpu_total", "cpu_seconds", "CPU time", "CPU time of the client's processes",
           "seconds", lambda trial: trial.cpu_seconds, LESS, total=True),
    Figure("memory", "peak_pss_bytes", "peak memory",
           "peak memory (PSS), summed over the client's processes, without the sample log",
           "bytes", lambda trial: trial.peak_pss_bytes, LESS, column=Column("memory", "known"),
           metric=Metric("peak_memory_bytes"), cost=True, compared=True),
    Figure("rss", "peak_rss_bytes", "peak RSS",
           "peak resident memory, summed over the client's processes, with the sample log",
           "bytes", lambda trial: trial.peak_rss_bytes, LESS, metric=Metric("peak_rss_bytes")),
    Figure("above_idle", "above_idle_bytes", "memory above idle",
           "peak memory minus the memory after the warm-up (PSS)",
           "bytes", _above_idle, LESS, column=Column("above idle", "large bodies"), cost=True),
)  # fmt: skip
"""Every figure, in the order of tables and comparisons."""

BY_KEY = {figure.key: figure for figure in FIGURES}
EXPORTED = tuple((figure, figure.metric) for figure in FIGURES if figure.metric is not None)
COMPARED = tuple(figure for figure in FIGURES if figure.compared)
_BY_NAME = {name: figure for figure in FIGURES for name in (figure.key, figure.name)}


def ranked_by(*, open_load: bool) -> Figure:
    """Return the figure that arms are ranked by: time per request in a closed load, and p99 in an open load.

    The schedule of an open load decides its wall time. Its p99 is that from the planned start.
    """
    return BY_KEY["p99" if open_load else "time_per_request"]


def cost_of(trial: Trial) -> float:
    """Return the figure of a finished trial that its arm is ranked by, in seconds; of a search, those per request."""
    if trial.highest_rate is not None:
        return 1 / trial.highest_rate.middle
    return ranked_by(open_load=trial.open_load is not None).of(trial) or 0.0


def find(name: str, field: str, value: str = "") -> Figure:
    """Return the figure of that key or full name. Raise FieldError for a `field` of that `value`; it lists the keys."""
    if name not in _BY_NAME:
        raise FieldError([field], f"{name!r} is not one of {', '.join(one.key for one in FIGURES)}", value=value)
    return _BY_NAME[name]


def of_claim(name: str) -> Figure:
    """Return the figure of that key or full name, if a claim may compare it. Raise ValueError, which lists the keys."""
    figure = _BY_NAME.get(name)
    if figure is None or not figure.claimable:
        raise ValueError(f"{name!r} is not one of {', '.join(one.key for one in FIGURES if one.claimable)}")
    return figure
