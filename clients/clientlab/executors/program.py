"""An external program that is client and executor in one: started once, it sends all requests itself."""

from __future__ import annotations

import subprocess
from time import perf_counter

from clientlab.executors.executor_interface import ExecutorContext, RequestNumbers


class Program:
    """Run the client's program once for all requests. Raises RuntimeError with the last line of stderr if it fails."""

    def __init__(self, context: ExecutorContext) -> None:
        self._context = context

    def open(self) -> None:
        self._driven = self._context.drive()

    def run(self, numbers: RequestNumbers) -> None:
        requests, in_flight, driven = numbers.count or 0, self._context.concurrency, self._driven
        command = driven.client.command(driven.request, requests, in_flight, driven.folder)
        began = perf_counter()
        ended = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        if ended.returncode:
            raise RuntimeError(f"{command[0]} ended with code {ended.returncode}: {_last_line(ended.stderr)}")
        driven.finish(began, driven.client.report(ended.stdout, driven.folder, requests, in_flight))

    def close(self) -> None:
        self._driven.close()


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "it printed nothing"
