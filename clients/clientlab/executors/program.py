"""A program that is client and executor in one: it is started once and sends all requests itself."""

from __future__ import annotations

import subprocess
from time import perf_counter

from clientlab.executors.shape import Bench, Numbers


class Program:
    """Runs the client's program for all requests at once. Raises RuntimeError with its last words where it fails."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench

    def open(self) -> None:
        self._driven = self._bench.drive()

    def run(self, numbers: Numbers) -> None:
        requests, in_flight, driven = numbers.count or 0, self._bench.concurrency, self._driven
        command = driven.client.command(driven.request, requests, in_flight, driven.folder)
        began = perf_counter()
        ended = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        if ended.returncode:
            raise RuntimeError(f"{command[0]} ended with code {ended.returncode}: {_last_line(ended.stderr)}")
        driven.finish(began, driven.client.tally(ended.stdout, driven.folder, requests, in_flight))

    def close(self) -> None:
        self._driven.close()


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "it said nothing"
