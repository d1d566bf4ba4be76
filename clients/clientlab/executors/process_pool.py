"""What the executors with a pool of processes share: how a process starts, where all meet, and whose number is next."""

from __future__ import annotations

import sys
import threading
from multiprocessing.context import BaseContext
from multiprocessing.synchronize import Barrier

from clientlab.errors import LabError
from clientlab.executors.timers import prepare

# Explicit, because Python 3.14 changed the default. The articles ran fork, which is cheap;
# system libraries of macOS do not survive a fork.
START_METHOD = "spawn" if sys.platform == "darwin" else "fork"

MEETING_SECONDS = 20.0


class SharedCounter:
    """Counts from 0 on: each number of an open load is taken once, by whoever is free.

    It is handed to pool processes when they start, and not later.
    """

    def __init__(self, multiprocessing: BaseContext) -> None:
        self._next = multiprocessing.Value("q", 0)

    def take(self) -> int:
        """The next number."""
        with self._next.get_lock():
            number: int = self._next.value
            self._next.value = number + 1
        return number


def arrive(meeting: Barrier | None) -> None:
    """Wait until every process is here. Raises LabError where some have not come in time.

    None: this process has been here before, so another one is missing.
    """
    prepare()
    try:
        if meeting is None:
            raise threading.BrokenBarrierError
        meeting.wait(MEETING_SECONDS)
    except threading.BrokenBarrierError:
        message = f"not all processes of the pool had started after {MEETING_SECONDS:g} s; lower -c"
        raise LabError(message) from None
