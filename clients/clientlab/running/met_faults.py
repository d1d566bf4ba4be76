"""What became of the requests that asked for a fault, from a trial's samples."""

from __future__ import annotations

from collections import Counter

import numpy as np

from clientlab.results.fault_counts import SUCCEEDED, FaultCounts, MetFault
from clientlab.samples.log_reader import Samples
from clientlab.workload.workload import Workload, fault_of

_EACH_BYTE, _BEHIND = "bytewise", "idle-close"


def met_faults(workload: Workload, sent: Samples) -> FaultCounts | None:
    """The counts of each fault of the workload; None without faults. `sent`: samples of the requests that were sent."""
    if workload.faults is None or not workload.faults.each:
        return None
    asked, kinds = _asked(workload, sent), {**sent.kinds, 0: SUCCEEDED}
    made = enumerate(workload.faults.of("upstream").each)
    by_fault = {fault.text: _met(sent, asked == place, kinds) for place, fault in made}
    beside = _met(sent, asked < 0, kinds)
    errors = {kind: count for kind, count in beside.met.items() if kind != SUCCEEDED}
    return FaultCounts(by_fault=by_fault, beside=errors, beside_seconds=beside.failed_seconds)


def fault_waits(workload: Workload, sent: Samples) -> float:
    """Seconds for which faults held up requests on purpose; no request longer than it took, as the client may leave.

    A fault between bytes holds up each byte of the body. One behind the answer holds up nobody.
    """
    made = () if workload.faults is None else workload.faults.of("upstream").each
    slow = [(place, fault) for place, fault in enumerate(made) if fault.seconds and fault.kind.name != _BEHIND]
    if not slow:
        return 0.0
    asked, waits = _asked(workload, sent), 0.0
    for place, fault in slow:
        records = sent.records[asked == place]
        held = fault.seconds * (records["bytes"] if fault.kind.name == _EACH_BYTE else np.ones(len(records)))
        waits += float(np.minimum(held, records["seconds"]).sum())
    return waits


def _asked(workload: Workload, sent: Samples) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """The place of each request's fault among those of the upstream; -1 for a request without one."""
    drawn = fault_of(workload)
    if drawn is None or workload.faults is None:
        return np.full(len(sent.numbers), -1, np.int64)
    places = {fault: place for place, fault in enumerate(workload.faults.of("upstream").each)}
    found = (drawn(number) for number in sent.numbers.tolist())
    return np.fromiter((-1 if fault is None else places[fault] for fault in found), np.int64, len(sent.numbers))


def _met(sent: Samples, wanted: np.ndarray[tuple[int], np.dtype[np.bool_]], kinds: dict[int, str]) -> MetFault:
    records = sent.records[wanted]
    codes, failed = records["error"].tolist(), records["error"] != 0
    counts = Counter(kinds[code] for code in codes)
    return MetFault(asked=len(records), met=dict(counts), failed_seconds=float(records["seconds"][failed].sum()))
