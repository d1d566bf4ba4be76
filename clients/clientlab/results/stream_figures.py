"""The figures of streams: when their events came, what they cost, and how many the client held open."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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
from clientlab.results.times import Quantiles, quantile_of
from clientlab.results.trial import Trial


def seconds_at_rate(trial: Trial) -> float:
    """Seconds that the requests of a finished trial take at its rate: its wall time, unless it has a tail."""
    if trial.tail_seconds is None or not trial.requests_per_second:
        return trial.wall_seconds or 0.0
    return (trial.requests - sum(trial.errors.values())) / trial.requests_per_second


def _times(part: str, quantile: str, label: str, text: str, **shown: Any) -> Figure:
    """`part`: a field of `Streams` without its unit."""

    def quantiles(trial: Trial) -> Quantiles | None:
        return None if trial.streams is None else getattr(trial.streams, f"{part}_seconds")

    name = {"p50": "median", "p99": "99th percentile"}[quantile]
    return Figure(
        f"{_KEYS.get(part, part)}_{quantile}", f"{_LONG[part]}_{quantile}_seconds",
        f"{name} of {label}", f"streams: {name} of {text}",
        "seconds", lambda trial: quantile_of(quantiles(trial), quantile), FASTER, resolution=RESOLUTION, **shown,
    )  # fmt: skip


_LONG = {
    "head": "first_byte",
    "first": "first_event",
    "gap": "event_gap",
    "lag": "event_lag",
    "late": "event_write_late",
}
"""Field of `Streams` → the beginning of the figure's full name."""
_KEYS = {"late": "write"}
"""Those whose key begins with another word: `late_p50` is the lateness of an open load's requests."""


def _of(field: str) -> Callable[[Trial], float | None]:
    """That field of `Streams`."""
    return lambda trial: None if trial.streams is None else getattr(trial.streams, field)


def _cpu_per_event(trial: Trial) -> float | None:
    if trial.streams is None or trial.cpu_seconds is None or not trial.streams.events:
        return None
    return trial.cpu_seconds / trial.streams.events


def _events_per_second(trial: Trial) -> float | None:
    if trial.streams is None or not trial.wall_seconds:
        return None
    return trial.streams.events / seconds_at_rate(trial)


def _per_connection(trial: Trial) -> float | None:
    if trial.streams is None or not trial.connections_opened:
        return None
    return trial.requests / trial.connections_opened


def _goodput(trial: Trial) -> float | None:
    if trial.streams is None or trial.streams.kept is None or not trial.wall_seconds:
        return None
    return trial.streams.kept / seconds_at_rate(trial)


def _kept(trial: Trial) -> float | None:
    """Failed streams kept no limit."""
    if trial.streams is None or trial.streams.kept is None or not trial.requests:
        return None
    return trial.streams.kept / trial.requests


STREAM_FIGURES: tuple[Figure, ...] = (
    Figure(
        "cpu_per_event", "cpu_seconds_per_event", "CPU time per event",
        "streams: CPU time of the client's process and its children, divided by the events that arrived",
        "seconds", _cpu_per_event, LESS,
        column=Column("CPU/event", "known"), metric=Metric("cpu_seconds_per_event"),
    ),
    _times(
        "lag", "p50", "lag", "the time from the write of an event by the server to the moment at which the client "
        "handed it over", column=Column("lag p50", "known"), metric=Metric("event_lag_seconds", "0.5"),
    ),
    _times(
        "lag", "p99", "lag", "the time from the write of an event by the server to the moment at which the client "
        "handed it over", column=Column("lag p99", "known"), metric=Metric("event_lag_seconds", "0.99"),
    ),
    Figure(
        "together", "events_together_share", "share of events that came together",
        "streams: events that had been written when the one before was handed over, among those behind another; "
        "half of a link's round trip is not counted",
        "share", _of("together"), FEWER, column=Column("together", "known"), metric=Metric("events_together_share"),
        claimable=True,
    ),
    _times("head", "p50", "time to first byte", "the time from the send to the head of the response"),
    _times(
        "first", "p50", "time to first event", "the time from the send to the first event",
        column=Column("first p50", "known"), metric=Metric("first_event_seconds", "0.5"),
    ),
    _times(
        "first", "p99", "time to first event", "the time from the send to the first event",
        metric=Metric("first_event_seconds", "0.99"),
    ),
    _times(
        "gap", "p50", "gaps", "the time between two events of a stream (inter-token latency)",
        metric=Metric("event_gap_seconds", "0.5"),
    ),
    _times(
        "gap", "p99", "gaps", "the time between two events of a stream (inter-token latency)",
        column=Column("gap p99", "known"), metric=Metric("event_gap_seconds", "0.99"),
    ),
    Figure(
        "event_rate", "events_per_second", "events per second",
        "streams: events of all streams per second, of the same time as the requests per second",
        "per-second", _events_per_second, Direction("faster", "slower", less_is_better=False),
        column=Column("events/s", "known"), metric=Metric("events_per_second"), scheduled=True,
    ),
    Figure(
        "per_connection", "streams_per_connection", "streams per connection",
        "streams: finished streams divided by the connections that the client opened; unknown where it opened none",
        "count", _per_connection, MORE,
        column=Column("streams/conn", "known"), metric=Metric("streams_per_connection"),
    ),
    Figure(
        "most_open", "most_open_streams", "most streams open",
        "streams: the most that were open at a moment",
        "count", _of("most_open"), MORE, column=Column("open", "known"), claimable=False,
    ),
    Figure(
        "goodput", "good_streams_per_second", "good streams per second",
        "streams: those that kept every limit of `--goodput`, per second",
        "per-second", _goodput, Direction("faster", "slower", less_is_better=False),
        column=Column("good/s", "known"), metric=Metric("good_streams_per_second"), scheduled=True,
    ),
    Figure(
        "kept", "kept_share", "share of good streams",
        "streams: those that kept every limit of `--goodput`, among all",
        "share", _kept, MORE, column=Column("good", "known"),
    ),
    _times(
        "late", "p50", "late writes", "the time from the planned to the real write of an event by the lab's upstream",
        claimable=False,
    ),
    _times(
        "late", "p99", "late writes", "the time from the planned to the real write of an event by the lab's upstream",
        column=Column("write error", "known"), metric=Metric("event_write_late_seconds", "0.99"), claimable=False,
    ),
)  # fmt: skip
"""They are known for workloads with `stream` only."""
