"""What a trial with faults tells beside its samples.

The upstream counts the attempts; an arm takes a while to come back after a state.
"""

from __future__ import annotations

import numpy as np

from clientlab.analysis.request_figures import ends_of
from clientlab.observing.samples import Samples
from clientlab.results.server_counters import FaultCounts
from clientlab.results.trial import Attempts, Recovery
from clientlab.statistics.histogram import SLICES, Floats
from clientlab.workload.faults import Faults, State

_RECOVERED = 0.9
"""Of the rate before a state: from here on, an arm counts as back."""

_FEWEST_ENDS = 20
_SHORTEST_LOOK = 0.1
"""Calls, and seconds, over which the rate is looked at after a state."""


def find_attempts(
    samples: Samples, counts: FaultCounts, faults: Faults, began: float, wall: float
) -> Attempts:
    """Return what upstream and client saw of the calls of a trial.

    `began` is monotonic; `wall` is in seconds.
    """
    statuses, calls = np.unique(samples.records["status"], return_counts=True)
    names = map(str, statuses.tolist())
    calls_by_status = dict(zip(names, calls.tolist(), strict=True))
    densest = None
    if counts.attempts:
        densest = max(counts.bins, default=0) / counts.attempts
    ends = _find_successes(samples, began)
    recoveries = [_find_recovery(ends, state, wall) for state in faults.states]
    return Attempts(
        calls=counts.calls,
        attempts=counts.attempts,
        carried_out=counts.carried_out,
        repeated=counts.repeated,
        kinds=counts.kinds,
        statuses=calls_by_status,
        densest_share=densest,
        over_time=_slice_attempts(counts, wall),
        recoveries=recoveries,
    )


def _slice_attempts(counts: FaultCounts, wall: float) -> list[float]:
    """Return the attempts in each slice of the wall time.

    The bins begin with the first attempt, so a moment after the trial.
    """
    totals = np.cumsum([0.0, *counts.bins])
    ends = counts.width * np.arange(len(totals))
    edges = np.linspace(0.0, wall, SLICES + 1)
    totals_at_edges = np.interp(edges, ends, totals)
    attempts: list[float] = np.diff(totals_at_edges).tolist()
    return attempts


def count_successes(samples: Samples, began: float, seconds: float) -> int:
    """Return how many calls succeeded in the first seconds of a trial."""
    ends = _find_successes(samples, began)
    return int(np.count_nonzero(ends <= seconds))


def _find_successes(samples: Samples, began: float) -> Floats:
    """Return when calls succeeded, in seconds from the trial's beginning, ascending."""
    records = samples.records
    good = records[records["error"] == 0]
    return np.sort(ends_of(good) - began)


def _find_recovery(ends: Floats, state: State, wall: float) -> Recovery:
    """Return when the rate of successes was back after a state.

    `ends`: of the successful calls, ascending. The rate is looked at over windows that
    hold some calls at the rate before; the arm is back at the beginning of the first
    window that has enough.
    """
    rate_before = 0.0
    if state.begin:
        ended_before = int(np.searchsorted(ends, state.begin))
        rate_before = ended_before / state.begin
    recovery = Recovery(state=str(state), end=state.end, rate_before=rate_before)
    if not rate_before:
        return recovery
    look = max(_SHORTEST_LOOK, _FEWEST_ENDS / rate_before)
    ends_after = ends[ends > state.end]
    begins = np.array([state.end, *ends_after])
    begins = begins[begins + look <= wall]
    first = np.searchsorted(ends, begins)
    last = np.searchsorted(ends, begins + look, side="right")
    rates = (last - first) / look
    is_back = rates >= _RECOVERED * rate_before
    if not is_back.any():
        return recovery
    back_at = float(begins[is_back.argmax()])
    return recovery.updated(seconds=back_at - state.end)


def find_foreign_calls(sent: int, counts: FaultCounts) -> str | None:
    """Return why more calls reached the upstream than were sent, or None."""
    if counts.calls <= sent:
        return None
    return (
        f"the upstream got {counts.calls:,} calls, and {sent:,} were sent: another"
        " program called it"
    )
