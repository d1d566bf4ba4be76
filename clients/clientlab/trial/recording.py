"""What a caller needs besides the clock: sample log, client, requests and error codes.

Python raises an audit event for each `connect` of its sockets, so an audit hook counts
the connections of most libraries. Those in C or Rust, and uvloop, do not use Python's
sockets: the lab's code for them calls `connected`.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import socket
import sys
import threading
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from clientlab import plugins, strategies
from clientlab.clients.client_interface import Budget
from clientlab.clients.retrying import AROUND, Send, retry_around
from clientlab.errors import (
    DROPPED,
    ErrorTable,
    PluginError,
    kind_of,
    opened_nothing,
    status_kind,
)
from clientlab.executors.call_limits import CALL_TIMEOUT, limit_call
from clientlab.machine import usage
from clientlab.trial.context import TOOL_FILE, ToolNote, TrialContext
from clientlab.trial.sample_log import EventLog, SampleLog
from clientlab.workload.load import (
    Arrivals,
    arrivals_of,
    first_share,
    is_staggered,
    most_late,
    requests_in,
)
from clientlab.workload.requests import requests_of, with_numbers
from clientlab.workload.workload import (
    Request,
    ShardWorkload,
    ToolReport,
    encodes_each,
    varies,
)

if TYPE_CHECKING:
    import asyncio

# Requests per second, for the size of the log of a trial that a duration ends
_GUESSED_RATE = 20_000
_GUESSED_STREAMS = 1000
# Seconds by which a library's limit of a call may end before the recorder's clock.
_CLOCK_STEP = 2e-3
_logs: dict[tuple[int, str], tuple[SampleLog, int]] = {}
"""(Process id, which a fork changes, folder) → log, and how many recordings use it.

Each thread may have one.
"""
_opening = threading.Lock()


class Recording:
    """A caller's part of a trial. Its client is made but not yet open."""

    def __init__(self, context: TrialContext, connections_limit: int) -> None:
        # A process of a pool may not have imported the file yet.
        plugins.admit([context.strategy.client])
        workload = context.workload
        spec = strategies.client_spec(context.strategy.client)
        client_class = strategies.load(spec.import_path)
        self.context = context
        self.log = _open_log(context)
        self.errors: ErrorTable = (
            *getattr(client_class, "errors", ()),
            (json.JSONDecodeError, "protocol"),
        )
        whole = context.whole or context
        self._first_wave = whole.concurrency if is_staggered(workload) else 0
        # Makes request k
        self.request = requests_of(
            workload,
            context.address.url,
            awaited=spec.kind == "asyncio",
            share_of=self._find_delay_share,
        )
        if context.numbered:
            self.request = with_numbers(self.request, in_url=spec.url_only)
        # The request from `same_from` on, if all are alike
        is_alike = not context.numbered and not varies(workload)
        self.same = self.request(-1) if is_alike else None
        # Whether these are timed
        self.encodes = encodes_each(workload)
        self.parses = workload.reading.parse
        self.expected = workload.reading.expect
        # `refused` returns 0 for every status below.
        self.refuses_from = 400 if workload.reading.expect is None else 0
        self._counts_connections = not spec.quirks.uncounted
        limit = workload.limits.call_timeout
        retry = strategies.retry_of(context.strategy)
        if retry is not None:
            retry = replace(retry, limit=limit)
        is_around = retry is not None and retry.way in AROUND
        self._library_retry = None if is_around else retry
        self._retry_around = retry if is_around else None
        self._library_limit = None
        self._cancelled_after = None
        # With retries, a library limits only each attempt.
        if spec.kind == "asyncio" and (retry is not None or not spec.limits_calls):
            self._cancelled_after = limit
        elif spec.limits_calls:
            self._library_limit = limit
        settings = strategies.select_settings(context.strategy, spec.import_path)
        self.client: Any = client_class(
            self._make_budget(connections_limit), self.log.connected, **settings
        )
        self.admission = None
        schedule = arrivals_of(workload)
        if schedule is not None:
            self.admission = Admission(self.log, schedule, most_late(workload))

    def find_same_from(self) -> float:
        """Return the number from which all requests of the slice are alike.

        Return infinity if they are not.
        """
        if self.same is None:
            return math.inf
        if not self._first_wave:
            return -math.inf
        log = self.log
        return (log.slice_began_with + self._first_wave - log.shard) / log.shards

    def _find_delay_share(self, number: int) -> float:
        """Return the share of its delay that a request asks for."""
        if not self._first_wave:
            return 1.0
        log = self.log
        place = number * log.shards + log.shard - log.slice_began_with
        return first_share(place, self._first_wave)

    def _make_budget(self, connections_limit: int) -> Budget:
        workload = self.context.workload
        settings = self.context.strategy.settings
        pool = settings.get("pool", connections_limit) or 0
        if settings.get("library_defaults"):
            pool = None
        reads_pieces = workload.reading.first_byte or workload.stream
        return Budget(
            pool,
            workload.limits.timeout,
            self.context.address.ca_file,
            None if reads_pieces else workload.reading.chunk_size,
            workload.reading.decode,
            self._library_retry,
            self._library_limit,
        )

    def wrap_send(self, send: Send, *, awaited: bool) -> Send:
        """Return a `send` with the retries, and the limit of a call, that the client's
        library does not do.

        It is called where requests are sent: in the running loop of an asyncio client.
        """
        if self._retry_around is not None:
            send = retry_around(send, self._retry_around, awaited=awaited)
        if self._cancelled_after is not None:
            send = limit_call(send, self._cancelled_after)
        return send

    def failed(self, error: Exception, seconds: float) -> int:
        """Return the log's code of an exception, raised after these seconds.

        Count a connection that was attempted but not opened. Raise a PluginError again:
        the client's code is wrong, and no request can succeed.
        """
        if isinstance(error, PluginError):
            raise error
        kind = kind_of(error, self.errors)
        if self._counts_connections and opened_nothing(error, kind):
            self.log.unopened()
        limit = self._library_limit
        if limit is not None and seconds > limit - _CLOCK_STEP and "timeout" in kind:
            kind = CALL_TIMEOUT
        code = self.log.codes.get(kind)
        if code is None:
            code = self.log.error_code(kind, f"{type(error).__name__}: {error}")
        return code

    def refused(self, status: int) -> int:
        """Return the log's code of a status that is an error; 0 for any other."""
        kind = status_kind(status, self.expected)
        return 0 if kind is None else self.log.error_code(kind, f"status {status}")

    def close(self) -> None:
        """Finish this caller's records.

        The last caller of this process closes its log.
        """
        key = os.getpid(), self.context.folder
        with _opening:
            log, recordings = _logs.pop(key)
            if recordings > 1:
                _logs[key] = log, recordings - 1
                return
        _Counting.log = None
        log.close(usage.peak_rss())


def preallocate(context: TrialContext) -> None:
    """Make this process's log before the clock starts.

    Making its files takes as long as some requests.
    """
    _logs[os.getpid(), context.folder] = _make_log(context), 0


def _open_log(context: TrialContext) -> SampleLog:
    """Return this process's log, which counts its connections from now on."""
    key = os.getpid(), context.folder
    with _opening:
        log, recordings = _logs.get(key) or (_make_log(context), 0)
        _logs[key] = log, recordings + 1
        log.begin()
        _Counting.log = log
        _Counting.port = context.address.port
        _Counting.refusing = context.address.refusing
        if not _Counting.is_hooked:
            sys.addaudithook(_count_connection)
            _Counting.is_hooked = True
    return log


def _make_log(context: TrialContext) -> SampleLog:
    folder = Path(context.folder)
    workload = context.workload
    whole = context.whole or context
    shard = 0
    if context.whole and isinstance(workload, ShardWorkload):
        shard = workload.index
    # The first shard has the longest warm-up.
    warm_up = whole.of_shard(0).warm_up * whole.shards
    expected = requests_in(whole.workload)
    if expected is None:
        rate = _GUESSED_RATE if workload.stream is None else _GUESSED_STREAMS
        expected = int((whole.workload.load.duration or 0.0) * rate) + 1
    log = SampleLog(folder, -warm_up, warm_up + expected, shard, whole.shards)
    if workload.stream is not None:
        log.events = EventLog(folder)
    return log


# Python cannot remove an audit hook, so it is added once and reads these attributes.
class _Counting:
    log: SampleLog | None = None
    port = 0
    refusing: tuple[str, ...] = ()
    is_hooked = False


_PYTHONS_OWN = socket.socket  # before gevent replaces it


def _count_connection(event: str, arguments: tuple[Any, ...]) -> None:
    """Count a connection to the upstream: the audit hook."""
    if event != "socket.connect" or (log := _Counting.log) is None:
        return
    connecting, peer = arguments
    is_internet = isinstance(peer, tuple) and len(peer) >= 2
    if not is_internet or peer[1] != _Counting.port or peer[0] in _Counting.refusing:
        return
    if type(connecting) is not _PYTHONS_OWN:
        # gevent calls `connect` a second time to learn that it is connected.
        with contextlib.suppress(OSError):
            connecting.getpeername()
            return
    log.connected()


LoopFactory = Callable[[], "asyncio.AbstractEventLoop"]


def find_loop_factory(name: str) -> LoopFactory:
    """Return the factory of an event loop, asyncio or uvloop.

    Raise ValueError or ImportError.
    """
    import asyncio  # noqa: PLC0415 - gevent has to patch ssl before asyncio imports it

    if name == "asyncio":
        return asyncio.new_event_loop
    if name != "uvloop":
        raise ValueError(f"no event loop {name!r}")
    import uvloop  # noqa: PLC0415 - only strategies on uvloop need it

    class CountingLoop(uvloop.Loop):
        """Counts connections, except those of sockets that are connected already.

        uvloop connects in C, without audit events.
        """

        async def create_connection(self, *arguments: Any, **keywords: Any) -> Any:
            try:
                connection = await super().create_connection(*arguments, **keywords)
            except BaseException as error:
                if opened_nothing(error, "connect"):  # `Recording.failed` subtracts it
                    self._count_connection(keywords)
                raise
            self._count_connection(keywords)
            return connection

        def _count_connection(self, keywords: dict[str, Any]) -> None:
            if keywords.get("sock") is None and _Counting.log is not None:
                _Counting.log.connected()

    return CountingLoop


class Admission:
    """Decides whether a request of an open load is still sent.

    It does so before the time of the request begins.
    """

    def __init__(
        self, log: SampleLog, schedule: Arrivals, most_seconds_late: float
    ) -> None:
        self._log = log
        self._start_of = schedule.start_of
        self._most_late = most_seconds_late
        self._began = 0.0

    def admits(self, number: int) -> bool:
        """Return whether to send the request now.

        Record a request that is not sent: it takes no time.
        """
        began = self._began
        if not began:
            began = self._began = self._log.schedule_began
        if number < 0 or not began:  # the warm-up has no schedule
            return True
        now = perf_counter()
        late = now - began - self._start_of(number)
        if late <= self._most_late:
            return True
        code = self._log.error_code(
            DROPPED, f"not sent: {late:.3f} s behind its planned start"
        )
        self._log.write_late(number, now, 0.0, 0, 0, code)
        return False


class ToolRecorder:
    """Records the trial of an external tool such as ApacheBench.

    Its times become samples, its other figures a note.
    """

    def __init__(self, recording: Recording) -> None:
        self.folder = Path(recording.context.folder)
        self.client = recording.client
        self.request: Request = recording.request(0)
        self._recording = recording
        self._cpu = usage.children_cpu_seconds()

    def finish(self, began: float, report: ToolReport) -> None:
        """Log a record for each request.

        `began`: when the tool was started, in seconds of the monotonic clock.

        The tool reports neither which requests failed nor when each began. So failures
        are spread evenly over the times, and all records begin with the tool. Status 0
        means unknown.
        """
        log = self._recording.log
        count = len(report.times)
        kinds: list[str] = []
        for kind, failed in report.errors.items():
            kinds += [kind] * failed
        kinds = kinds[:count]
        codes = {
            index * count // len(kinds): log.error_code(
                kind, "counted by the tool, without a message"
            )
            for index, kind in enumerate(kinds)
        }
        size, rest = divmod(report.bytes_received, count)
        for number, seconds in enumerate(report.times):
            of_body = size if number else size + rest
            log.write_late(number, began, seconds, of_body, 0, codes.get(number, 0))
        log.connected(report.connections)
        cpu_seconds = usage.children_cpu_seconds() - self._cpu
        note = ToolNote(report.seconds, cpu_seconds, report.kept_alive)
        (self.folder / TOOL_FILE).write_text(json.dumps(asdict(note)), encoding="ascii")

    def close(self) -> None:
        self._recording.close()
