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

    def read(self) -> Mapping[int, tuple[float, float]]:
        """Return number → when the handler began and ended, in monotonic seconds.

        Of a request that came several times, the last one counts.
        """
        handled = {}
        for path in self._files():
            content = path.read_bytes()[self._sizes.get(path, 0) :]
            whole = len(content) // _TRACE.itemsize
            records = np.frombuffer(content, _TRACE, whole)
            for number, began, ended in records.tolist():
                handled[number] = (began / 1e9, ended / 1e9)
        return handled


def find_waits(
    samples: Samples,
    workload: Workload,
    trace: Mapping[int, tuple[float, float]],
    *,
    one_loop: bool = False,
) -> Waits | None:
    """Return the parts of the time of successful requests, or None without any.

    Without a `trace`, the parts at the server are unknown. `one_loop`: a single event
    loop sent all requests.
    """
    good = samples.only(samples.records["error"] == 0)
    if trace:
        good = good.only(np.isin(good.numbers, list(trace)))
    records = good.records
    if not len(records):
        return None
    starts: Floats = records["start"]
    ends = ends_of(records)
    planned = starts
    schedule = arrivals_of(workload)
    if schedule is not None:
        planned = samples.schedule_began + evaluate(schedule.start_of, good.numbers)
    delay = delay_of(workload)
    waits = Waits(
        requests=len(records),
        latency=_summarize(ends - planned),
        late=None if schedule is None else _summarize(starts - planned),
        asked=None if delay is None else _summarize(good.delays(delay)),
    )
    if not trace:
        return waits
    handled = np.array([trace[number] for number in good.numbers.tolist()])
    began, ended = handled.T
    wall = float(ends.max() - starts.min())
    return waits.updated(
        to_handler=_summarize(began - starts),
        in_handler=_summarize(ended - began),
        to_read=_summarize(ends - ended),
        longest_stall=_find_longest_stall(starts, ended, ends) if one_loop else None,
        most_at_server=count_at_once(began, ended),
        mean_at_server=float((ended - began).sum()) / wall,
    )


def _find_longest_stall(starts: Floats, answered: Floats, ends: Floats) -> float:
    """Return the longest time without a start or an end before the end of a request
    that had its answer.
    """
    moments = np.sort(np.concatenate([starts, ends]))
    places = np.searchsorted(moments, ends)  # each has its own start before it
    before = moments[places - 1]
    return max(0.0, float((ends - np.maximum(answered, before)).max()))


def _summarize(seconds: Floats) -> PartOfTime:
    p50, p99 = np.quantile(seconds, [0.5, 0.99]).tolist()
    return PartOfTime(mean=float(seconds.mean()), p50=p50, p99=p99)
