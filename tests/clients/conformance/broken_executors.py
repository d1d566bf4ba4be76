"""Executors of a user's file that break one thing each."""

from __future__ import annotations

import subprocess

from clientlab.executors.threads import Threads


class IgnoresTheEnd:
    """An executor that sends far longer than it is asked to."""

    def __init__(self, context):
        self._context = context

    def open(self):
        self._call = self._context.open(1)

    def run(self, numbers):
        if numbers.deadline is not None:
            numbers.deadline += 1.5
        self._call.send_all(numbers)

    def close(self):
        self._call.close()


class LeavesAProcess(Threads):
    """An executor that starts a process which outlives it."""

    def open(self):
        super().open()
        subprocess.Popen(["sleep", "9"], start_new_session=True)
