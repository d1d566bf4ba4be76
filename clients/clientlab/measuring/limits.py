"""The limits of a trial: how long a request may take, and how much memory the trial's processes may hold.

The parent process watches both, so they cost the measured process nothing and hold for every library. Most libraries
limit each wait for bytes, but not the whole response, and none limits the size of a body that it reads whole.
"""

from __future__ import annotations

import contextlib
import math
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
from clientlab.samples.log import process_notes
from clientlab.workload.load import longest_pause, requests_in

SHARE_OF_FREE = 0.75
"""Share of the memory that is free at the start that a trial's processes may hold, if the workload has no limit."""


class Limits:
    """Watches one trial. `check` is called twice a second; `begin` at the start of each part.

    `seconds`: the longest time a request may take. While no request ends, all requests in flight are at least as old as
    the last end, so the trial ends after this time without one. `bytes`: memory of all processes that send requests,
    without file pages. A given limit is that of one shard.
    """

    def __init__(self, context: TrialContext, pids: Collection[int], patience: float) -> None:
        workload, folder = context.workload, Path(context.folder)
        self.seconds = workload.timeout + patience if workload.request_limit is None else workload.request_limit
        given = None if workload.memory_limit is None else workload.memory_limit * context.shards
        self._bytes = SHARE_OF_FREE * free_memory() if given is None else given
        self._pause = longest_pause(workload)  # of an open load, which has nothing in flight then
        own = sum(context.of_shard(shard).warm_up for shard in range(context.shards))
        self._warm_up = own if context.warm else workload.warmup * context.shards
        requests = math.inf if (count := requests_in(workload)) is None else count
        self._requests = 0 if context.has_tool else requests  # a tool reports them at its end
        self._pids = frozenset(pids)
        self._folders = (folder, folder / WARM_UP_FOLDER)
        self.begin("warm-up")

    def begin(self, part: Literal["warm-up", "measured", "end"]) -> None:
        """Go on with the next part of the trial."""
        self._until = {"warm-up": self._warm_up, "measured": self._warm_up + self._requests, "end": 0}[part]
        self._seen: tuple[int, ...] = ()
        self._since = time.monotonic()

    def check(self, finished: int) -> None:
        """Raise TrialStalled or TrialFailed. `finished`: requests so far, including the warm-up."""
        senders = {note.pid for folder in self._folders for note in process_notes(folder)}
        self._check_memory(self._pids | senders)
        seen, now = (finished, len(senders)), time.monotonic()
        if seen != self._seen:
            self._seen, self._since = seen, now
        elif senders and finished < self._until and now - self._since > self.seconds + self._pause:
            raise TrialStalled(f"stalled: no request ended for {self.seconds:g} s, the `request_limit` of the workload")

    def _check_memory(self, pids: Collection[int]) -> None:
        held = sum(map(private_memory, pids))
        # Only near the limit, pages that forked processes share are counted once: that keeps them from mapping memory.
        if held > self._bytes and (found := footprint(pids)) is not None:
            held = found.now
        if held > self._bytes:
            raise TrialFailed(
                f"memory: its processes held {units.memory(held)}, more than {units.memory(self._bytes)}, which is the "
                f"`memory_limit` of the workload or {SHARE_OF_FREE:.0%} of the free memory"
            )


def private_memory(pid: int) -> int:
    """Return the resident bytes of a process that no file backs (on macOS, all); 0 if it has ended."""
    with contextlib.suppress(psutil.Error):
        memory = psutil.Process(pid).memory_info()
        return int(memory.rss - getattr(memory, "shared", 0))
    return 0


def free_memory() -> int:
    """Return the bytes that a new process may take without swapping, on this machine and in its control groups."""
    available = int(psutil.virtual_memory().available)
    left = cgroups.memory_left()
    return available if left is None else max(0, min(available, left))
