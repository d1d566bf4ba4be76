"""What a trial with faults tells beside its samples: the attempts that the upstream
counted, and how long an arm took to come back.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from clientlab.observing.samples import Samples
from clientlab.results.server_counters import FaultCounts
from clientlab.results.trial import Attempts, Recovery
from clientlab.statistics.histogram import SLICES
from clientlab.workload.faults import Faults, State

_RECOVERED = 0.9
"""Of the rate before a state: from here on, an arm counts as back."""

_FEWEST_ENDS = 20
_SHORTEST_LOOK = 0.1
"""Calls, and seconds, over which the rate is looked at after a state."""

Floats = npt.NDArray[np.float64]


def find_attempts(
    samples: Samples, counts: FaultCounts, faults: Faults, began: float, wall: float
) -> Attempts:
    """Return what upstream and client saw of the calls of a trial.

    `began` is monotonic; `wall` is in seconds.
    """
    statuses, calls = np.unique(samples.records["status"], return_counts=True)
    densest = None
    if counts.attempts:
        densest = max(counts.bins, default=0) / counts.attempts
    return Attempts(
        calls=counts.calls,
        attempts=counts.attempts,
        carried_out=counts.carried_out,
        repeated=counts.repeated,
        kinds=counts.kinds,
        statuses=dict(zip(map(str, statuses.tolist()), calls.tolist(), strict=True)),
        densest_share=densest,
        over_time=_slice_attempts(counts, wall),
        recoveries=list(_find_recoveries(samples, faults, began, wall)),
    )


def _slice_attempts(counts: FaultCounts, wall: float) -> list[float]:
    """Return the attempts in each slice of the wall time.

    The bins begin with the first attempt, so a moment after the trial.
    """
    until = np.concatenate([[0.0], np.cumsum(counts.bins)])
    ends = counts.width * np.arange(len(until))
    edges = np.linspace(0.0, wall, SLICES + 1)
    attempts: list[float] = np.diff(np.interp(edges, ends, until)).tolist()
    return attempts


def count_successes(samples: Samples, began: float, seconds: float) -> int:
    """Return how many calls succeeded in the first seconds of a trial."""
    return int(np.count_nonzero(_successes(samples, began) <= seconds))


def _successes(samples: Samples, began: float) -> Floats:
    """Return when calls succeeded, in seconds from the trial's beginning, ascending."""
    records = samples.records[samples.records["error"] == 0]
    ends: Floats = np.sort(records["start"] + records["seconds"] - began)
    return ends


def _find_recoveries(
    samples: Samples, faults: Faults, began: float, wall: float
) -> Iterator[Recovery]:
    ends = _successes(samples, began)
    for state in faults.states:
        yield _find_recovery(ends, state, wall)


def _find_recovery(ends: Floats, state: State, wall: float) -> Recovery:
    """Return when the rate of successes was back after a state.

    `ends`: of the successful calls, ascending. The rate is looked at over windows that
    hold some calls at the rate before; the arm is back at the beginning of the first
    window that has enough.
    """
    before = np.searchsorted(ends, state.begin) / state.begin if state.begin else 0.0
    recovery = Recovery(state=str(state), end=state.end, rate_before=float(before))
    if not before:
        return recovery
    look = max(_SHORTEST_LOOK, _FEWEST_ENDS / before)
    after = np.concatenate([[state.end], ends[ends > state.end]])
    after = after[after + look <= wall]
    first = np.searchsorted(ends, after)
    last = np.searchsorted(ends, after + look, side="right")
    is_back = (last - first) / look >= _RECOVERED * before
    if not is_back.any():
        return recovery
    seconds = float(after[is_back.argmax()]) - state.end
    return recovery.updated(seconds=seconds)


def find_foreign_calls(sent: int, counts: FaultCounts) -> str | None:
    """Return that the upstream got other calls than were sent, or None."""
    if counts.calls <= sent:
        return None
    return (
        f"the upstream got {counts.calls:,} calls, and {sent:,} were sent: another"
        " program called it"
    )
