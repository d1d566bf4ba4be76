"""Trials that a program drives: its own figures into the sample log, and what no sample can hold beside it.

Here the clock is the program's, and so are its times: the recorder would measure the program's start as well.
"""

from __future__ import annotations

import json
import resource
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from clientlab.measuring.recording import Recording
from clientlab.tally import Tally
from clientlab.workload import Request

_NOTE = "driven.json"


@dataclass(frozen=True)
class Note:
    """What a program said of its trial: seconds by its clock, CPU seconds of its own, requests on kept connections."""

    wall_seconds: float
    cpu_seconds: float
    kept_alive: int


class Driven:
    """A trial's request and client, for the executor that starts the program, and the log for what it found."""

    def __init__(self, folder: Path, recording: Recording, client: Any) -> None:
        self.folder = folder
        self.client = client
        self.request: Request = recording.request(0)
        self._recording = recording
        self._cpu = _children_cpu()

    def finish(self, began: float, tally: Tally) -> None:
        """Log a record for each request. `began`: when the program was started, on the log's clock.

        Which requests failed is not told, nor when each began: failures are put evenly among the times, so that
        those of the others keep their distribution, and all begin with the program. A status of 0 is not told.
        """
        log = self._recording.log
        codes = self._codes(tally)
        each, left = divmod(tally.bytes_received, len(tally.times))
        for number, seconds in enumerate(tally.times):
            log.write_late(number, began, seconds, each + (left if number == 0 else 0), 0, codes.get(number, 0))
        log.connected(tally.connections)
        note = Note(tally.seconds, _children_cpu() - self._cpu, tally.kept_alive)
        (self.folder / _NOTE).write_text(json.dumps(asdict(note)), encoding="ascii")

    def close(self) -> None:
        self._recording.close()

    def _codes(self, tally: Tally) -> dict[int, int]:
        """Number of a request → code of its error."""
        kinds = [kind for kind, count in tally.errors.items() for _ in range(count)][: len(tally.times)]
        message = "as counted by the program, which tells no more"
        return {
            index * len(tally.times) // len(kinds): self._recording.log.error_code(kind, message)
            for index, kind in enumerate(kinds)
        }


def note_of(folder: Path) -> Note | None:
    """The note of a trial that a program drove; None of any other."""
    place = folder / _NOTE
    return Note(**json.loads(place.read_text(encoding="ascii"))) if place.exists() else None


def _children_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
