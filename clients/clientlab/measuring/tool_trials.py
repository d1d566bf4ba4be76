"""Trials of an external tool such as ApacheBench: its times go to the sample log, its other figures to a note."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from clientlab.external_tool import ToolReport
from clientlab.measuring.recording import Recording
from clientlab.measuring.usage import children_cpu_seconds
from clientlab.workload.workload import Request

_NOTE = "tool.json"


@dataclass(frozen=True)
class ToolNote:
    """Figures of a tool that no sample can hold: wall and CPU seconds, and requests on kept connections."""

    wall_seconds: float
    cpu_seconds: float
    kept_alive: int


class ToolRecorder:
    """Has the request and the client for the executor of an external tool, and logs the tool's report."""

    def __init__(self, folder: Path, recording: Recording) -> None:
        self.folder = folder
        self.client = recording.client
        self.request: Request = recording.request(0)
        self._recording = recording
        self._cpu = children_cpu_seconds()

    def finish(self, began: float, report: ToolReport) -> None:
        """Log a record for each request. `began`: when the tool was started, in seconds of the monotonic clock.

        The tool does not report which requests failed, nor when each began. So failures are spread evenly over the
        times, which keeps the distribution of the others, and all records begin with the tool. Status 0 is unknown.
        """
        log = self._recording.log
        kinds = [kind for kind, count in report.errors.items() for _ in range(count)][: len(report.times)]
        codes = {
            index * len(report.times) // len(kinds): log.error_code(kind, "counted by the tool, without a message")
            for index, kind in enumerate(kinds)
        }
        each, left = divmod(report.bytes_received, len(report.times))
        for number, seconds in enumerate(report.times):
            log.write_late(number, began, seconds, each + (left if number == 0 else 0), 0, codes.get(number, 0))
        log.connected(report.connections)
        note = ToolNote(report.seconds, children_cpu_seconds() - self._cpu, report.kept_alive)
        (self.folder / _NOTE).write_text(json.dumps(asdict(note)), encoding="ascii")

    def close(self) -> None:
        self._recording.close()


def read_note(folder: Path) -> ToolNote | None:
    """Return the note of an external tool's trial; None for any other trial."""
    path = folder / _NOTE
    return ToolNote(**json.loads(path.read_text(encoding="ascii"))) if path.exists() else None
