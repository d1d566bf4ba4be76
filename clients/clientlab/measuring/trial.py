"""One trial, seen from outside: start its process, read its marks, and what it cost."""

from __future__ import annotations

import contextlib
import json
import math
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psutil

from clientlab import children, strategies
from clientlab.measuring import usage
from clientlab.measuring.recorder import TrialBench
from clientlab.measuring.trial_process import order_of
from clientlab.sample import ProcessNote, process_notes

TICK_SECONDS = 0.5
PATIENCE = 30.0
_PROXY_VARIABLES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


class TrialFailed(Exception):
    """The strategy could not do its workload; the reason in one line."""


@dataclass(frozen=True)
class Outcome:
    """What the marks of a finished trial say. Seconds and bytes; `began` on the monotonic clock."""

    began: float
    wall_seconds: float
    cpu_seconds: float
    idle_rss_bytes: int
    peak_rss_bytes: int
    connections_begun: int
    connections_opened: int
    processes: int  # that sent requests


def run_trial(
    bench: TrialBench,
    watch: Callable[[], int],
    at_ready: Callable[[], None],
    at_done: Callable[[], None],
    patience: float = PATIENCE,
) -> Outcome:
    """Run one trial in a fresh interpreter.

    `watch` is called every half second and tells how many requests have finished; `at_ready` and
    `at_done` just before and after the measured part, while the trial waits. Raises TrialFailed; on
    any other exception, KeyboardInterrupt included, no process of the trial is left. `patience`: seconds
    beyond the workload's own time limit, after which a trial in which nothing finishes has stalled.
    """
    longest = bench.workload.timeout + patience
    with _Process(bench) as process:
        process.mark("ready", watch, longest)
        at_ready()
        tree_before, folder = process.children_cpu(), Path(bench.folder)
        warm = process_notes(folder)
        idle = _settle({process.pid, *(note.pid for note in warm)})
        process.go_on()
        # A program tells of nothing before its end, and has the workload's time limit for itself.
        drives = bool(strategies.client_row(bench.strategy.client).program)
        done = process.mark("done", watch, math.inf if drives else longest)
        tree_after = process.children_cpu()
        notes = process_notes(folder)
        at_done()
        peak = done["peak_rss_bytes"] + sum(_peak(note) for note in notes if note.pid != process.pid)
        process.go_on()
        process.end()
    return Outcome(
        began=done["began"],
        wall_seconds=done["wall_seconds"],
        cpu_seconds=max(0.0, done["cpu_seconds"] + tree_after - tree_before),
        idle_rss_bytes=idle,
        peak_rss_bytes=peak,
        connections_begun=sum(note.connections for note in notes) - sum(note.connections for note in warm),
        connections_opened=sum(note.opened for note in notes) - sum(note.opened for note in warm),
        processes=max(1, len(notes)),
    )


def _settle(pids: Iterable[int]) -> int:
    """Resident bytes of the processes now, from where their high-water marks begin anew.

    Linux alone can set a mark back (proc(5), clear_refs); elsewhere, and where it does not permit that, a peak is
    that of the warm-up as well.
    """
    resident = 0
    for pid in pids:
        with contextlib.suppress(psutil.NoSuchProcess):  # what has ended holds nothing
            resident += psutil.Process(pid).memory_info().rss
        with contextlib.suppress(OSError):
            Path(f"/proc/{pid}/clear_refs").write_text("5", encoding="ascii")
    return resident


def _peak(note: ProcessNote) -> int:
    """Peak memory of a process of the pool: as it wrote itself, or read off while it lives."""
    if note.peak_rss_bytes:
        return note.peak_rss_bytes
    status = Path(f"/proc/{note.pid}/status")
    return usage.high_water(status.read_text(encoding="ascii")) if status.exists() else 0


class _Process:
    """The trial's process and all that it starts: a process group of its own."""

    def __init__(self, bench: TrialBench) -> None:
        folder = Path(bench.folder)
        folder.mkdir(parents=True, exist_ok=True)
        self._log = folder / "trial.log"
        self._marks, theirs = os.pipe()
        words, self._orders = os.pipe()
        environment = {k: v for k, v in os.environ.items() if k.lower() not in _PROXY_VARIABLES}
        # Else some clients send the passwords of ~/.netrc, and others none. No such file can be: an empty one that is
        # would be read again for each request.
        environment["NETRC"] = f"{os.devnull}/none"
        command = [sys.executable, "-m", "clientlab.measuring.trial_process", str(theirs)]
        self._process = children.start(command, self._log, environment, [theirs], words=words)
        os.close(theirs)
        os.close(words)
        self._unread = b""
        self._write(json.dumps(order_of(bench)))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        children.stop(self._process, patience=0)
        os.close(self._orders)
        os.close(self._marks)

    @property
    def pid(self) -> int:
        return self._process.pid

    def mark(self, name: str, watch: Callable[[], int], longest: float) -> dict[str, Any]:
        """The figures of the next mark, which must be `name`.

        Raises TrialFailed, also when nothing has finished for `longest` seconds.
        """
        finished, last_progress = watch(), time.monotonic()
        told = select.poll()  # takes descriptors of any number, as select does not
        told.register(self._marks, select.POLLIN)
        while b"\n" not in self._unread:
            if told.poll(TICK_SECONDS * 1000):
                self._read()
                continue
            now_finished = watch()
            if now_finished != finished:
                finished, last_progress = now_finished, time.monotonic()
            elif time.monotonic() - last_progress > longest:
                raise TrialFailed(f"stalled: no request finished for {longest:g} s")
        line, _, self._unread = self._unread.partition(b"\n")
        figures: dict[str, Any] = json.loads(line)
        if figures["mark"] == "failed":
            raise TrialFailed(figures["reason"])
        if figures["mark"] != name:
            raise TrialFailed(f"the trial answered {figures['mark']!r} where {name!r} was due")
        return figures

    def go_on(self) -> None:
        """Let the trial leave its mark."""
        self._write("go on")

    def children_cpu(self) -> float:
        """CPU seconds so far of the children alive now, and of theirs."""
        seconds = 0.0
        for child in psutil.Process(self._process.pid).children(recursive=True):
            try:
                seconds += sum(child.cpu_times()[:4])
            except psutil.NoSuchProcess:
                continue  # ended meanwhile: the trial's own figure holds it
        return seconds

    def end(self) -> None:
        """Wait for the trial to close what it opened."""
        try:
            self._process.wait(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            raise TrialFailed(f"did not end within {PATIENCE:g} s of its last request") from None

    def _write(self, line: str) -> None:
        try:
            os.write(self._orders, line.encode() + b"\n")
        except BrokenPipeError:
            raise TrialFailed(self._last_words()) from None

    def _read(self) -> None:
        block = os.read(self._marks, 65536)
        if not block:
            raise TrialFailed(self._last_words())
        self._unread += block

    def _last_words(self) -> str:
        return f"its process {children.how_it_ended(self._process, self._log)}"
