"""One process's part of a trial, beside the clock: its log, its connections, its requests, its errors' codes."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from clientlab.errors import ErrorTable, kind_of, status_kind, unopened
from clientlab.measuring import connections, usage
from clientlab.measuring.connections import NOWHERE
from clientlab.sample import SampleLog
from clientlab.workload import Workload, requests_of, varies

if TYPE_CHECKING:
    from clientlab.measuring.recorder import TrialBench

_GUESSED_RATE = 20_000  # requests a second
_ready: dict[tuple[int, str], SampleLog] = {}  # by process, since a fork changes that, and folder


def make_ready(bench: TrialBench) -> None:
    """Make this process's log, so that its recording finds it: files cost as much as some requests do.

    Where others do the sending, it is left unused.
    """
    _ready[os.getpid(), bench.folder] = _log_of(bench)


class Recording:
    """One process's part of a trial: its log, its count of connections, the requests to send.

    `awaited`: the client is one of asyncio.
    """

    def __init__(self, bench: TrialBench, errors: ErrorTable, *, awaited: bool = False) -> None:
        place = os.getpid(), bench.folder
        self.log = _ready.pop(place) if place in _ready else _log_of(bench)
        self.log.begin()
        usage.keep_status_open()
        connections.count_into(self.log, bench.address)
        self.errors: ErrorTable = (*errors, (json.JSONDecodeError, "protocol"))
        self.request = requests_of(bench.workload, bench.base_url, awaited=awaited)
        # One object for all where all are alike, so that none costs a call.
        self.same = None if varies(bench.workload) else self.request(0)

    def failed(self, error: Exception) -> int:
        """The log's code for an exception, of any kind."""
        kind = kind_of(error, self.errors)
        if unopened(error, kind):
            self.log.unopened()
        return self.log.error_code(kind, f"{type(error).__name__}: {error}")

    def refused(self, status: int) -> int:
        """The log's code for a status that is an error; 0 for all others."""
        kind = status_kind(status)
        return 0 if kind is None else self.log.error_code(kind, f"status {status}")

    def close(self) -> None:
        """Finish this process's records; nothing is recorded afterwards."""
        connections.count_into(None, NOWHERE)
        self.log.close(usage.peak_rss())


def _log_of(bench: TrialBench) -> SampleLog:
    return SampleLog(Path(bench.folder), -bench.warm_up, bench.warm_up + _expected(bench.workload))


def _expected(workload: Workload) -> int:
    """Requests to take room for in advance; a guess where a duration ends them."""
    if workload.requests is not None:
        return workload.requests
    return int((workload.duration or 0.0) * _GUESSED_RATE) + 1
