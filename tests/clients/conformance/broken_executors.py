"""Executors of a user's file that break one thing each."""

from __future__ import annotations

import subprocess
from concurrent.futures import ThreadPoolExecutor

from clientlab.executors.threads import Threads


class IgnoresTheEnd:
    """An executor that sends five times as long as it is asked to."""

    def __init__(self, context):
        self._context = context

    def open(self):
        self._call = self._context.open(1)

    def run(self, numbers):
        if numbers.deadline is not None:
            numbers.deadline += 2
        self._call.send_all(numbers)

    def close(self):
        self._call.close()


class LeavesOneOut(IgnoresTheEnd):
    """An executor that never sends the last."""

    def run(self, numbers):
        every = list(numbers) if numbers.count is not None else numbers
        self._call.send_all(every[:-1] if isinstance(every, list) else every)


class OneMore(Threads):
    """An executor with a thread more than it may have."""

    def open(self):
        super().open()
        self._pool = ThreadPoolExecutor(self._context.concurrency + 1)


class LeavesAProcess(Threads):
    """An executor that starts a process which outlives it."""

    def open(self):
        super().open()
        subprocess.Popen(["sleep", "9"], start_new_session=True)
