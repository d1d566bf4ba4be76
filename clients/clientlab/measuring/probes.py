"""What the requests of a probe show of a client: how many found a free slot, and what its process holds then."""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil

from clientlab.measuring.context import TrialContext
from clientlab.samples.log_reader import read
from clientlab.workload.cancelled_requests import probe_seconds

_WAVE = 0.8
"""Requests that end within this part of the probe's delay after the first one had a slot at the same time."""


@dataclass(frozen=True)
class MeasuredProbe:
    """A probe of c requests at once. `at_once`: those that had a slot of the pool at the same time.

    `seconds`: until the last was answered, without the delays that follow from the slots; None where one was not
    answered. `gave_up_seconds`: then, until the lab gave it up, without these delays. `sockets`: of the process to the
    target; None: not readable.
    """

    answered: int
    at_once: int
    seconds: float | None
    gave_up_seconds: float | None
    sockets: int | None
    threads: int | None
    tasks: int


@dataclass(frozen=True)
class Probes:
    """One before the measured part, and one behind it."""

    before: MeasuredProbe
    after: MeasuredProbe


def read_probe(context: TrialContext, pid: int, first: MeasuredProbe | None, began: float, tasks: int) -> MeasuredProbe:
    """The probe that has just ended in a process which waits. `began`: monotonic seconds. `first`: the one before it.

    With ten slots, twenty requests take two delays: those of the first probe decide how many both may take.
    """
    found = read(Path(context.folder), began)
    records = found.records[found.numbers < 0]
    all_ends, delay = records["start"] + records["seconds"], probe_seconds(context.workload, context.concurrency)
    ends = all_ends[records["error"] == 0]
    at_once = int((ends <= ends.min() + _WAVE * delay).sum()) if len(ends) and delay else len(ends)
    whole = len(ends) == context.concurrency
    slots = at_once if first is None else first.at_once
    waits = delay * math.ceil(context.concurrency / max(1, slots))
    took = max(0.0, float(np.max(all_ends)) - began - waits) if len(all_ends) else 0.0
    return MeasuredProbe(
        answered=len(ends),
        at_once=at_once,
        seconds=took if whole else None,
        gave_up_seconds=None if whole else took,
        sockets=_sockets(pid, context.address.port),
        threads=_threads(pid),
        tasks=tasks,
    )


def _sockets(pid: int, port: int) -> int | None:
    """The process's sockets that are, or were, connected to this port."""
    with contextlib.suppress(psutil.Error, OSError):
        found = psutil.Process(pid).net_connections(kind="tcp")
        return sum(bool(one.raddr) and one.raddr.port == port for one in found)
    return None


def _threads(pid: int) -> int | None:
    with contextlib.suppress(psutil.Error):
        return int(psutil.Process(pid).num_threads())
    return None
