"""Where all processes of a pool meet before a schedule begins, or before the measured part."""

from __future__ import annotations

import threading
from multiprocessing.synchronize import Barrier

from clientlab.errors import LabError
from clientlab.executors.timers import prepare

MEETING_SECONDS = 20.0


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
