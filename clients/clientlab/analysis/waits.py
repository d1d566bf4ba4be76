"""Where the time of requests goes: the client's samples beside the upstream's trace.

Both clocks are the machine's monotonic clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from clientlab.analysis.request_figures import count_at_once, ends_of
from clientlab.observing.samples import Samples, evaluate
from clientlab.results.explanation import PartOfTime, Waits
from clientlab.statistics.histogram import Floats
from clientlab.workload.load import arrivals_of
from clientlab.workload.workload import Workload, delay_of

_TRACE = np.dtype([("number", "<i8"), ("began", "<i8"), ("ended", "<i8")])
"""A record of mockupstream.trace; times in nanoseconds."""

Handled = Mapping[int, tuple[float, float]]
"""Request number → when the handler began and ended, in monotonic seconds."""


class Trace:
    """What the upstream logs from now on."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.begin()

    def begin(self) -> None:
        """Leave out what was logged before, as by a warm-up with the same numbers."""
        self._sizes = {path: path.stat().st_size for path in self._files()}

    def _files(self) -> list[Path]:
        return sorted(self._folder.glob("*.trace"))

    def read(self) -> Handled:
        """Return the requests that were handled.

        The last one counts if a request came several times.
        """
        handled = {}
        for path in self._files():
            logged_before = self._sizes.get(path, 0)
            content = path.read_bytes()[logged_before:]
            count = len(content) // _TRACE.itemsize
            records = np.frombuffer(content, _TRACE, count)
            for number, began, ended in records.tolist():
                handled[number] = (began / 1e9, ended / 1e9)
        return handled


def find_waits(
    samples: Samples,
    workload: Workload,
    trace: Handled,
    *,
    one_loop: bool = False,
) -> Waits | None:
    """Return the parts of the time of successful requests, or None without any.

    Without a `trace`, the parts at the server are unknown. `one_loop`: a single event
    loop sent all requests.
    """
    good = samples.only(samples.records["error"] == 0)
    if trace:
        is_handled = np.isin(good.numbers, list(trace))
        good = good.only(is_handled)
    records = good.records
    if not len(records):
        return None
    starts = records["start"]
    ends = ends_of(records)
    planned = starts
    late = None
    schedule = arrivals_of(workload)
    if schedule is not None:
        planned = samples.schedule_began + evaluate(schedule.start_of, good.numbers)
        late = _summarize(starts - planned)
    asked = None
    delay = delay_of(workload)
    if delay is not None:
        asked = _summarize(good.delays(delay))
    latency = _summarize(ends - planned)
    waits = Waits(requests=len(records), latency=latency, late=late, asked=asked)
    if not trace:
        return waits
    return _add_trace(waits, good, trace, one_loop=one_loop)


def _add_trace(
    waits: Waits,
    good: Samples,
    trace: Handled,
    *,
    one_loop: bool,
) -> Waits:
    """Return the waits with the parts at the server, and on the way to and from it."""
    starts = good.records["start"]
    ends = ends_of(good.records)
    handled = np.array([trace[number] for number in good.numbers.tolist()])
    began, ended = handled.T
    handling = ended - began
    longest_stall = None
    if one_loop:
        longest_stall = _find_longest_stall(starts, ended, ends)
    wall = float(ends.max() - starts.min())
    return waits.updated(
        to_handler=_summarize(began - starts),
        in_handler=_summarize(handling),
        to_read=_summarize(ends - ended),
        longest_stall=longest_stall,
        most_at_server=count_at_once(began, ended),
        mean_at_server=float(handling.sum()) / wall,
    )


def _find_longest_stall(starts: Floats, answered: Floats, ends: Floats) -> float:
    """Return the longest time in which a loop left an answer unread.

    It counts from the start or end of a request before.
    """
    moments = np.sort(np.concatenate([starts, ends]))
    places = np.searchsorted(moments, ends)  # each has its own start before it
    before = moments[places - 1]
    stalls = ends - np.maximum(answered, before)
    return max(0.0, float(stalls.max()))


def _summarize(seconds: Floats) -> PartOfTime:
    mean = float(seconds.mean())
    p50, p99 = np.quantile(seconds, [0.5, 0.99]).tolist()
    return PartOfTime(mean=mean, p50=p50, p99=p99)
