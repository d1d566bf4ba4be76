"""Figures of retries: what the caller gets, and what the upstream bears for it.

With n attempts at most, and a share p of attempts that fail, independent of each other: goodput is a share of 1 - p^n
of the requests, and amplification is (1 - p^n) / (1 - p).
"""

from __future__ import annotations

from clientlab.results.figure_definition import FEWER, LESS, MORE, Column, Direction, Figure, Metric
from clientlab.results.trial import Trial


def _succeeded(trial: Trial) -> float | None:
    """Over all of the wall time: the requests that an outage has held back count with the time that they took."""
    if not trial.wall_seconds:
        return None
    return (trial.requests - sum(trial.errors.values())) / trial.wall_seconds


def _served_share(trial: Trial) -> float | None:
    return None if not trial.requests else 1 - sum(trial.errors.values()) / trial.requests


def _amplification(trial: Trial) -> float | None:
    """For a request that was sent: one that an open load drops never was, and a cancelled one was."""
    use = trial.upstream_use
    dropped = 0 if trial.open_load is None else trial.open_load.dropped
    sent = trial.requests - dropped + (0 if trial.cancelled is None else trial.cancelled.count)
    return None if use is None or use.requests is None or sent <= 0 else use.requests / sent


def _duplicates(trial: Trial) -> float | None:
    return None if trial.upstream_use is None else trial.upstream_use.duplicates


RETRY_FIGURES: tuple[Figure, ...] = (
    Figure(
        "served", "served_per_second", "goodput",
        "the caller's successful requests per second of wall time, with all their attempts",
        "per-second", _succeeded, Direction("faster", "slower", less_is_better=False),
        column=Column("goodput", "retries"), metric=Metric("served_per_second"), scheduled=True, despite_errors=True,
    ),
    Figure(
        "served_share", "served_share", "share of served requests",
        "the caller's successful requests, with all their attempts, among all",
        "share", _served_share, MORE, column=Column("served", "retries"), despite_errors=True,
    ),
    Figure(
        "amplification", "amplification", "amplification",
        "requests that reached the upstream for one of the caller's",
        "count", _amplification, LESS,
        column=Column("amplif.", "retries"), metric=Metric("amplification"), cost=True, despite_errors=True,
    ),
    Figure(
        "duplicates", "duplicates", "duplicates",
        "requests with POST or PATCH that arrived once more, although an attempt had arrived before",
        "count", _duplicates, FEWER,
        column=Column("duplicates", "retries"), metric=Metric("duplicates"), total=True, despite_errors=True,
    ),
    Figure(
        "after_outage", "load_after_outage", "load after an outage",
        "requests per second at the upstream after the link's outage, for as long as it was, over those before it",
        "count", lambda trial: trial.load_after_outage, LESS,
        column=Column("after outage", "known"), metric=Metric("load_after_outage"), despite_errors=True,
    ),
)  # fmt: skip
