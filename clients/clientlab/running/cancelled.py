"""Sets the cancelled requests of a trial apart from the others, and describes what they left of the client."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np

from clientlab.errors import CANCELLED
from clientlab.measuring import probes
from clientlab.measuring.outcome import Measurement
from clientlab.results.cancel_counts import Cancelled, Probe
from clientlab.results.fault_counts import SUCCEEDED
from clientlab.samples.log import ERROR_CODES
from clientlab.samples.log_reader import Samples
from clientlab.workload.cancelled_requests import cancellation_of
from clientlab.workload.workload import Workload, cancels


def without_cancelled(found: Samples) -> Samples:
    """The samples of the requests that nobody cancelled."""
    wanted = found.records["error"] != ERROR_CODES[CANCELLED]
    return found if wanted.all() else found.only(wanted)


def set_apart(measurement: Measurement) -> Measurement:
    """The measurement of the requests that nobody cancelled."""
    kept, events = without_cancelled(measurement.samples), measurement.events
    if events is not None and kept is not measurement.samples:
        events = events.only(np.isin(events.requests, kept.numbers))
    return replace(measurement, samples=kept, events=events)


def cancelled_among(found: Samples, workload: Workload) -> Cancelled | None:
    """What became of the requests that were to be cancelled; None where the workload has none."""
    if not cancels(workload):
        return None
    drawn = cancellation_of(workload)
    chosen = [None if one is None else one.way for one in map(drawn, found.numbers.tolist())]
    gave_up = found.records["error"] == ERROR_CODES[CANCELLED]
    ways = Counter(way for way, gone in zip(chosen, gave_up.tolist(), strict=True) if gone)
    kinds = {**found.kinds, 0: SUCCEEDED}
    codes = found.records["error"].tolist()
    others = zip(chosen, codes, gave_up.tolist(), strict=True)
    ended = Counter(kinds[code] for way, code, gone in others if way is not None and not gone)
    return Cancelled(
        asked=sum(way is not None for way in chosen),
        by_timeout=ways["timeout"],
        by_task=ways["task"],
        ended=dict(ended),
        seconds=float(found.records["seconds"][gave_up].sum()),
    )


def cancelled_in(measurement: Measurement, workload: Workload) -> Cancelled | None:
    """The same of a finished trial, with what a probe shows of its client."""
    found, both = cancelled_among(measurement.samples, workload), measurement.probes
    if found is None or both is None:
        return found
    held = dict(zip(("held_before", "held_after"), measurement.held, strict=True))
    return found.model_copy(update={"before": _part(both.before), "after": _part(both.after), **held})


def _part(probe: probes.MeasuredProbe) -> Probe:
    return Probe(**vars(probe))
