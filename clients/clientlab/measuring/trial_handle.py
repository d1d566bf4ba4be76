"""A trial's process as its parent sees it: start it, wait for its events, let it go on, end it."""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import select
import subprocess
import sys
import time
from collections.abc import Callable, Collection
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psutil

from clientlab import child_processes
from clientlab.measuring import usage
from clientlab.measuring.context import CONTEXT_FILE, OUTPUT_FILE, TrialContext
from clientlab.measuring.interpreter import Interpreter

TICK_SECONDS = 0.5
PATIENCE = 30.0
_LOOK_SECONDS = 2.0
"""After so long without progress, and again after as long, the lab looks whether a process of the trial is stopped."""

PROXY_VARIABLES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
"""In lower case: names of environment variables that lead requests to a proxy."""


class TrialFailed(Exception):
    """The strategy could not do its workload; the reason in one line."""


class TrialStalled(TrialFailed):
    """No request finished for longer than a request may take."""


class TrialHandle:
    """The process of one trial. It and all its children are one process group, which is killed at the end."""

    def __init__(self, context: TrialContext, interpreter: Interpreter, cpus: Collection[int] = ()) -> None:
        """Write the context into the trial's folder and start the process on these CPUs. Raises OSError.

        The context may hold a large body. A pipe would block until the process has started, and a signal could cut
        the write short.
        """
        folder = Path(context.folder)
        folder.mkdir(parents=True, exist_ok=True)
        self._context = folder / CONTEXT_FILE
        with os.fdopen(os.open(self._context, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(pickle.dumps(context))
        self._log = folder / OUTPUT_FILE
        self._events, child_events = os.pipe()
        child_input, self._input = os.pipe()
        environment = {k: v for k, v in interpreter.variables().items() if k.lower() not in PROXY_VARIABLES}
        # Otherwise some clients send the passwords of ~/.netrc, and others do not. The path cannot exist: requests and
        # niquests would open an existing empty file for each request.
        environment["NETRC"] = f"{os.devnull}/none"
        command = interpreter.command("clientlab.measuring.trial_process", str(folder), str(child_events))
        self._process = child_processes.start(
            command, self._log, environment, [child_events], stdin=child_input, cpus=cpus
        )
        os.close(child_events)
        os.close(child_input)
        self._unread = b""
        # Processes of a pool inherit the pipe's other end, and keep it open when the trial's own process has ended.
        self._ended = _pidfd(self._process.pid)
        self._poll = select.poll()  # unlike select(), it takes file descriptors of any number
        for descriptor in (self._events, self._ended):
            if descriptor is not None:
                self._poll.register(descriptor, select.POLLIN)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        child_processes.stop(self._process, patience=0)
        self._context.unlink(missing_ok=True)  # a process that ended early has not read it
        for descriptor in (self._input, self._events, self._ended):
            if descriptor is not None:
                os.close(descriptor)

    @property
    def pid(self) -> int:
        return self._process.pid

    def event(self, name: str, progress: Callable[[], int], stall_seconds: float) -> dict[str, Any]:
        """Wait for the next event, which must be `name`, and return its figures.

        `progress` returns the number of finished requests; it is called every half second. Raises TrialFailed when
        the trial failed, ended or was stopped, and TrialStalled when no request finished for `stall_seconds`.
        """
        finished, since = progress(), time.monotonic()
        looked = since
        while b"\n" not in self._unread:
            if self._has_read():
                continue
            latest, now = progress(), time.monotonic()
            if latest != finished:
                finished, since = latest, now
            elif now - since > stall_seconds:
                raise TrialStalled(f"stalled: no request finished for {stall_seconds:g} s")
            if now - max(since, looked) > _LOOK_SECONDS:
                self._check_stopped()
                looked = time.monotonic()
        line, _, self._unread = self._unread.partition(b"\n")
        figures: dict[str, Any] = json.loads(line)
        if figures["event"] == "failed":
            raise TrialFailed(figures["reason"])
        if figures["event"] != name:
            raise TrialFailed(f"the trial sent the event {figures['event']!r} instead of {name!r}")
        return figures

    def resume(self) -> None:
        """Let the trial go on after an event. Raises TrialFailed where its process has ended."""
        try:
            os.write(self._input, b"\n")
        except BrokenPipeError:
            raise TrialFailed(self._how_it_ended()) from None

    def pids(self) -> list[int]:
        """Process ids of the trial's process and of all its living descendants."""
        with contextlib.suppress(psutil.NoSuchProcess):  # it has ended, and the next event will show how
            return [self.pid, *(child.pid for child in psutil.Process(self.pid).children(recursive=True))]
        return [self.pid]

    def children_cpu(self) -> float:
        """CPU seconds so far of all living descendants of the trial's process."""
        seconds = 0.0
        for child in psutil.Process(self._process.pid).children(recursive=True):
            try:
                own, system, *reaped = child.cpu_times()[:4]
                seconds += (usage.cpu_seconds_of(child.pid) or own + system) + sum(reaped)
            except psutil.NoSuchProcess:
                continue  # it has ended meanwhile, and the trial's own figure includes it
        return seconds

    def wait(self) -> None:
        """Wait until the trial has closed its connections and ended. Raises TrialFailed."""
        try:
            self._process.wait(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            raise TrialFailed(f"did not end within {PATIENCE:g} s of its last request") from None

    def _has_read(self) -> bool:
        """Wait half a second for a part of an event. Raises TrialFailed where the trial's process has ended."""
        ready = [descriptor for descriptor, _ in self._poll.poll(TICK_SECONDS * 1000)]
        if self._events in ready and (block := os.read(self._events, 65536)):
            self._unread += block
            return True
        if self._events in ready or self._process.poll() is not None:
            raise TrialFailed(self._how_it_ended())
        return False

    def _check_stopped(self) -> None:
        """Raises TrialFailed where a process of the trial is stopped, as by SIGSTOP: it would never go on."""
        if stopped := child_processes.stopped(self.pid):
            raise TrialFailed(f"frozen: its process {stopped[0]} is stopped")

    def _how_it_ended(self) -> str:
        return f"its process {child_processes.how_it_ended(self._process, self._log)}"


def _pidfd(pid: int) -> int | None:
    """A file descriptor that is readable as soon as the process has ended (pidfd_open(2)); None without one.

    Without one (not Linux, or a sandbox that forbids it), the end is noticed within half a second.
    """
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            return os.pidfd_open(pid)
    return None
