"""The figures that only open loads have: how well a trial kept to its schedule, and latency from the real start."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from clientlab.results.figure_definition import (
    FASTER,
    FEWER,
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
    """That field of `OpenLoad`."""
    return lambda trial: None if trial.open_load is None else getattr(trial.open_load, name)


def _dropped(trial: Trial) -> float | None:
    return None if trial.open_load is None or not trial.requests else trial.open_load.dropped / trial.requests


def _capacity(trial: Trial) -> float | None:
    return None if trial.search is None else trial.search.capacity_per_second


def _capacity_bounded(trial: Trial) -> bool:
    return trial.search is not None and trial.search.at_least


CAPACITY = Figure(
    "capacity", "capacity_per_second", "capacity",
    "the highest uniform rate that the arm held in the search of the trial's round (`--find-max`)",
    "per-second", _capacity, Direction("higher", "lower", less_is_better=False),
    column=Column("capacity/s", "known"), bounded=_capacity_bounded, before_send=True,
)  # fmt: skip

OPEN_LOAD_FIGURES: tuple[Figure, ...] = (
    CAPACITY,
    _quantile(
        "sent_p50", "median latency from the real start",
        "median latency from the moment at which a request was sent, of those that were sent",
        ("sent_seconds", "p50"),
    ),
    _quantile(
        "sent_p99", "99th percentile of latency from the real start",
        "99th percentile of latency from the moment at which a request was sent, of those that were sent",
        ("sent_seconds", "p99"), column=Column("p99 sent", "known"),
    ),
    _quantile(
        "late_p50", "median lateness",
        "median of the time from the planned to the real start; a dropped request is at least as late",
        ("lateness_seconds", "p50"), before_send=True,
        column=Column("late p50", "known"), metric=Metric("lateness_seconds", "0.5"),
    ),
    _quantile(
        "late_p99", "99th percentile of lateness",
        "99th percentile of the time from the planned to the real start; a dropped request is at least as late",
        ("lateness_seconds", "p99"), before_send=True,
        column=Column("late p99", "known"), metric=Metric("lateness_seconds", "0.99"),
    ),
    Figure(
        "planned_rate", "planned_requests_per_second", "planned rate",
        "open load: requests over the length of the schedule",
        "per-second", _field("planned_per_second"), MORE,
        column=Column("planned/s", "known"), metric=Metric("planned_requests_per_second"), claimable=False,
    ),
    Figure(
        "achieved_rate", "achieved_requests_per_second", "achieved rate",
        "open load: requests that were sent, over the length of the schedule, or over the time until the last of them "
        "was sent if that is longer",
        "per-second", _field("achieved_per_second"), MORE,
        column=Column("achieved/s", "known"), metric=Metric("achieved_requests_per_second"),
    ),
    Figure(
        "backlog", "backlog_requests", "largest backlog",
        "open load: the most requests that were due at a moment and neither sent nor dropped",
        "count", _field("most_backlog"), FEWER,
        column=Column("backlog", "known"), metric=Metric("backlog_requests"),
    ),
    Figure(
        "dropped", "dropped_share", "share of dropped requests",
        "open load: requests that were not sent, because they were too late, among all",
        "share", _dropped, FEWER,
        column=Column("dropped", "known"), metric=Metric("dropped_share"), claimable=False,
    ),
)  # fmt: skip
