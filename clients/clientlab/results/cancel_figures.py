"""The figures of trials with cancelled requests: what these left of the client."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from clientlab.results.figure_definition import FASTER, FEWER, Column, Figure, Metric
from clientlab.results.trial import Trial


def _left(key: str, label: str, text: str, of: Callable[[Trial], float | None], **shown: Any) -> Figure:
    metric = Metric(key)
    return Figure(
        key, key, label, f"cancellation: {text}", "count", of, FEWER, metric=metric, despite_errors=True, **shown
    )


def _more(what: str) -> Callable[[Trial], float | None]:
    """How much more of it the second probe has than the first."""
    return lambda trial: None if trial.cancelled is None else trial.cancelled.left(what)


def _slots(trial: Trial) -> float | None:
    return None if trial.cancelled is None else trial.cancelled.slots_lost


def _held(trial: Trial) -> float | None:
    return None if trial.cancelled is None else trial.cancelled.held


def _share(trial: Trial) -> float | None:
    found = trial.cancelled
    return None if found is None or not trial.requests + found.count else found.count / (trial.requests + found.count)


def _recovery(trial: Trial) -> float | None:
    """A probe that is not answered in time took at least until the lab gave up. None: nor was the first one."""
    found = trial.cancelled
    if found is None or found.after is None or found.before is None or found.before.seconds is None:
        return None
    return found.after.gave_up_seconds if found.after.seconds is None else found.after.seconds


def _unanswered(trial: Trial) -> bool:
    after = None if trial.cancelled is None else trial.cancelled.after
    return after is not None and after.seconds is None and _recovery(trial) is not None


CANCEL_FIGURES: tuple[Figure, ...] = (
    Figure(
        "cancelled", "cancelled_share", "share of cancelled requests",
        "cancellation: requests that their caller gave up, among all; they count in no other figure",
        "share", _share, FEWER, column=Column("cancelled", "known"), claimable=False,
    ),
    _left(
        "slots_lost", "pool slots lost",
        "requests that had a slot of the pool at once before the measured part, less those behind it",
        _slots, column=Column("slots lost", "known"),
    ),
    _left(
        "sockets_left", "sockets left", "sockets to the target behind the measured part, less those before it",
        _more("sockets"), column=Column("sockets left", "known"),
    ),
    _left(
        "tasks_left", "tasks left", "asyncio's tasks behind the measured part, less those before it", _more("tasks"),
        column=Column("tasks left", "known"),
    ),
    _left(
        "threads_left", "threads left", "threads of the client behind the measured part, less those before it",
        _more("threads"), column=Column("threads left", "known"),
    ),
    _left(
        "held_left", "requests left in the upstream",
        "requests that the upstream holds behind the measured part although nobody waits for them", _held,
    ),
    Figure(
        "recovery", "recovery_seconds", "time to recover",
        "cancellation: time until as many requests as may be in flight were answered, sent at once behind the measured "
        "part, without the delays that the slots of the first probe make",
        "seconds", _recovery, FASTER, bounded=_unanswered, despite_errors=True,
        column=Column("recovery", "known"), metric=Metric("recovery_seconds"),
    ),
)  # fmt: skip
