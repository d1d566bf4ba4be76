"""The limits of a trial: how long a request may take, and how much memory the trial's processes may hold.

The parent process watches both, so they cost the measured process nothing and hold for every library. Most libraries
limit each wait for bytes, but not the whole of a response, and none limits the size of a body that it reads whole.
"""

from __future__ import annotations

import contextlib
import math
import resource
import time
from collections.abc import Collection
from pathlib import Path
from typing import Literal

import psutil

from clientlab import units
from clientlab.measuring import cgroups
from clientlab.measuring.context import WARM_UP_FOLDER, TrialContext
from clientlab.measuring.trial_handle import TrialFailed, TrialStalled
from clientlab.measuring.usage import footprint
from clientlab.samples.log import NOTE_SUFFIX, process_note
from clientlab.workload.load import longest_pause, requests_in

TrialPart = Literal["warm-up", "measured", "end"]

SHARE_OF_FREE = 0.75
"""Of the memory that is free when a trial starts, its processes may hold so much, unless the workload has a limit."""

_PAGE = resource.getpagesize()
_RAPID = 0.25
"""If memory grew by this share of what is left to the limit, it is read again at once, and not after a tick."""

_AT_ONCE, _RAPID_SECONDS = 0.02, 0.4


class LimitReached(TrialFailed):
    """The trial was ended because it had reached one of its limits. The text names the limit and its option."""


class RequestLimitReached(LimitReached, TrialStalled):
    """No request ended for as long as one may take."""


class Limits:
    """Watches one trial. `check` is called twice a second; `begin` at the start of each part.

    `seconds`: no request may take longer. While no request ends, all requests in flight are at least as old as the last
    end: so the trial is ended after so long without an end. A slow request among quick ones is not cut.
    `bytes`: memory of all processes that send requests, without what files back. A given limit is that of one shard.
    """

    def __init__(self, context: TrialContext, pids: Collection[int], patience: float) -> None:
        workload, folder = context.workload, Path(context.folder)
        self.seconds = workload.timeout + patience if workload.request_limit is None else workload.request_limit
        given = None if workload.memory_limit is None else workload.memory_limit * context.shards
        self.bytes = SHARE_OF_FREE * free_memory() if given is None else given
        self._pause = longest_pause(workload)  # of an open load: nothing is in flight then
        self._context = context
        self._warm_up = sum(context.of_shard(shard).warm_up for shard in range(context.shards))
        self._pids = frozenset(pids)
        self._folders = (folder, folder / WARM_UP_FOLDER)
        self._known: tuple[dict[str, int], dict[str, int]] = {}, {}
        self._held = self._shared = 0
        self.begin("warm-up")

    def begin(self, part: TrialPart, *, counted: bool = True) -> None:
        """The trial goes on with the next part. `counted`: whether its requests are recorded one by one."""
        self._part = part
        self._counted = counted
        self._seen: tuple[int, ...] = ()
        self._since = time.monotonic()

    def check(self, finished: int, warmed_up: int) -> None:
        """Raises LimitReached. `finished`: requests so far, without those of a warm-up that has a log of its own."""
        pids = self._senders()
        self._check_memory({*self._pids, *pids})
        seen, now = (finished, warmed_up, len(pids)), time.monotonic()
        if seen != self._seen:
            self._seen, self._since = seen, now
        elif (
            pids
            and self._counted
            and self._in_flight(finished, warmed_up)
            and now - self._since > self.seconds + self._pause
        ):
            raise RequestLimitReached(
                f"stalled: no request ended for {self.seconds:g} s, the `request_limit` of the workload"
            )

    def _senders(self) -> Collection[int]:
        """The processes that send requests in this part. The file of each is read until the process has begun."""
        apart = self._part == "warm-up" and not self._context.warm
        known = self._known[apart]
        with contextlib.suppress(FileNotFoundError):  # no process has a log yet
            for path in self._folders[apart].iterdir():
                if path.suffix == NOTE_SUFFIX and path.name not in known:
                    note = process_note(path)
                    if note is not None:
                        known[path.name] = note.pid
        return known.values()

    def _in_flight(self, finished: int, warmed_up: int) -> bool:
        """Whether requests of this part have not ended yet."""
        workload = self._context.workload
        if self._part == "warm-up":
            cold = workload.warmup * self._context.shards
            return finished < self._warm_up if self._context.warm else warmed_up < cold
        requests = math.inf if (count := requests_in(workload)) is None else count
        return self._part == "measured" and finished < self._warm_up + requests

    def _check_memory(self, pids: Collection[int]) -> None:
        until = time.monotonic() + _RAPID_SECONDS
        while True:
            before, self._held = self._held, self._memory(pids)
            if self._held > self.bytes:
                held, most = units.memory(self._held), units.memory(self.bytes)
                raise LimitReached(
                    f"memory: its processes held {held}, more than {most}, which is the `memory_limit` of the workload "
                    f"or {SHARE_OF_FREE:.0%} of the free memory"
                )
            if self._held - before < _RAPID * (self.bytes - self._held) or time.monotonic() > until:
                return
            time.sleep(_AT_ONCE)

    def _memory(self, pids: Collection[int]) -> int:
        """Bytes that the processes hold. Pages that forked processes share are counted once, but only near the limit.

        The kernel counts shared pages only by a walk that keeps the processes from mapping memory.
        """
        together = sum(private_memory(pid) for pid in pids)
        if together - self._shared > self.bytes and (found := footprint(pids)) is not None:
            self._shared = max(0, together - found.now)
        return together - self._shared


def private_memory(pid: int) -> int:
    """Resident bytes of a process that no file backs (proc(5), statm); 0 for one that has ended.

    Without /proc, as on macOS, all resident bytes.
    """
    with contextlib.suppress(OSError, IndexError):
        words = Path(f"/proc/{pid}/statm").read_bytes().split()
        return (int(words[1]) - int(words[2])) * _PAGE
    with contextlib.suppress(psutil.Error):
        return int(psutil.Process(pid).memory_info().rss)
    return 0


def free_memory() -> int:
    """Bytes that a new process may take without swapping, on this machine and in its control groups."""
    available = int(psutil.virtual_memory().available)
    left = cgroups.memory_left()
    return available if left is None else max(0, min(available, left))
