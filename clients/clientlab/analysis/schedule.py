"""How a trial kept to the schedule of its open load: lateness, backlog, achieved rate, and latency from the plan.

A request that waits for a free place begins late. A latency that is measured from its real start leaves that wait
out, and in a closed load nobody sends while a server is frozen ("coordinated omission": Tene 2015, How NOT to Measure
Latency). From the planned start, each request counts the whole time that a user would have waited.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from clientlab.analysis.summary import latency_of
from clientlab.samples.log_reader import Flags, Records

Floats = npt.NDArray[np.float64]


def from_planned(records: Records, planned: Floats) -> Records:
    """The records as if each request had begun at its planned start. `planned`: seconds, one for each record."""
    moved = records.copy()
    moved["start"] = planned
    moved["seconds"] = records["start"] + records["seconds"] - planned
    return moved


def kept_to(records: Records, planned: Floats, dropped: Flags, began: float, length: float) -> dict[str, Any]:
    """Figures of a schedule of `length` seconds from `began` on. Shapes: (n,) each, in the order of the records.

    `lateness_seconds`: from the planned to the real start, of all requests; that of a dropped one is a lower bound.
    `sent_seconds`: from the real start to the end, of the requests that were sent. The achieved rate is that of the
    requests that were sent, over the schedule's length, or over the time until the last one was sent if that is longer.
    """
    starts, seconds = records["start"], records["seconds"]
    sent, late = ~dropped, starts - planned
    good = records["error"] == 0
    end = began + length
    last = float(starts[sent].max()) - began if sent.any() else 0.0
    return {
        "planned_per_second": len(records) / length,
        "achieved_per_second": int(sent.sum()) / max(length, last),
        "lateness_seconds": latency_of(late[sent], late[dropped]),
        "sent_seconds": latency_of(seconds[good], seconds[~good & sent]),
        "dropped": int(dropped.sum()),
        "most_backlog": most_backlog(planned, starts),
        "most_in_flight": most_at_once(records[sent]),
        "in_flight_at_end": int(((starts <= end) & (starts + seconds > end) & sent).sum()),
    }


def most_backlog(planned: Floats, starts: Floats) -> int:
    """The most requests that were due at a moment and neither sent nor dropped.

    It is largest just before one of them is sent. No timer is exact, so it is 1 at least.
    """
    if not len(starts):
        return 0
    due = np.searchsorted(np.sort(planned), np.sort(starts), side="right")
    return int((due - np.arange(len(starts))).max())


def most_at_once(records: Records) -> int:
    """The most requests in flight at a moment."""
    starts, ends = np.sort(records["start"]), np.sort(records["start"] + records["seconds"])
    ended = np.searchsorted(ends, starts, side="right")
    return int((np.arange(1, len(starts) + 1) - ended).max()) if len(starts) else 0


def over_time(records: Records, planned: Floats, dropped: Flags, edges: Floats) -> list[dict[str, float]]:
    """Requests planned, sent and dropped in each slice of the trial, and the backlog at its end. `edges`: its moments.

    Shape of `edges`: one more than there are slices; the first is the beginning of the trial.
    """
    starts, ends = records["start"], edges[1:]
    counts = [
        np.searchsorted(np.sort(moments), ends, side="right")
        for moments in (planned, starts[~dropped], starts[dropped])
    ]
    grown = [np.diff(count, prepend=0) for count in counts]
    backlog = np.maximum(counts[0] - counts[1] - counts[2], 0)
    names = ("planned", "sent", "dropped", "backlog")
    rows = (dict(zip(names, map(int, row), strict=True)) for row in zip(*grown, backlog, strict=True))
    return [{"at": float(edge - edges[0]), **row} for edge, row in zip(edges, rows, strict=False)]
