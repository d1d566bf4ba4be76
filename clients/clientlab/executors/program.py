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
            *_, last = "it printed nothing", *filter(str.strip, ended.stderr.splitlines())
            raise RuntimeError(f"{command[0]} ended with code {ended.returncode}: {last.strip()}")
        driven.finish(began, driven.client.report(ended.stdout, driven.folder, requests, in_flight))

    def close(self) -> None:
        self._driven.close()
