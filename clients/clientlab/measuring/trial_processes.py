"""The processes that do a trial: one, or one for each shard of a divided trial. They share the sample log."""

from __future__ import annotations

import os
import pickle
import select
import time
from collections.abc import Callable, Collection
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

from clientlab.measuring.context import CONTEXT_FILE, TrialContext
from clientlab.measuring.trial_handle import Interpreter, TrialFailed, TrialHandle, TrialStalled
from clientlab.workload.shard_workload import READY_SECONDS

_TICK_SECONDS = 0.5
_LOOK_SECONDS = 2.0
"""After so long without progress, and again after as long, the lab looks whether a process of the trial is stopped."""


class TrialProcesses:
    """All of them as one: an event has come when each process has sent it. They are killed at the end."""

    def __init__(self, context: TrialContext, interpreter: Interpreter, cpus: Collection[int] = ()) -> None:
        """Write the context into the trial's folder and start the processes on these CPUs. Raises OSError.

        The context may hold a large body. A pipe would block until the process has started, and a signal could cut
        the write short. The file goes as soon as each process has it open: it holds secrets of headers, and the folder
        of a failed trial stays.
        """
        folder = Path(context.folder)
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / CONTEXT_FILE
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as written:
            written.write(pickle.dumps(context))
        self._poll = select.poll()  # unlike select(), it takes file descriptors of any number
        self.each: list[TrialHandle] = []
        with ExitStack() as started:
            started.callback(file.unlink)
            with ExitStack() as processes:
                for shard in range(context.shards):
                    process = TrialHandle(folder, interpreter, shard, context.shards, cpus)
                    self.each.append(processes.enter_context(process))
                    process.watch(self._poll)
                self._started = processes.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._started.close()

    def event(self, name: str, progress: Callable[[], int], stall_seconds: float) -> list[dict[str, Any]]:
        """Wait for the next event of each process, which must be `name`, and return their figures.

        `progress` returns the number of finished requests; it is called every half second. Raises TrialFailed when
        the trial failed, ended or was stopped, and TrialStalled when no request finished for `stall_seconds`.
        """
        finished, since = progress(), time.monotonic()
        looked, first = since, None
        found = [process.event(name) for process in self.each]
        while None in found:
            if self._receive():
                found = [
                    process.event(name) if had is None else had for process, had in zip(self.each, found, strict=True)
                ]
                continue
            latest, now = progress(), time.monotonic()
            if latest != finished:
                finished, since = latest, now
            elif now - since > stall_seconds:
                raise TrialStalled(f"stalled: no request finished for {stall_seconds:g} s")
            if now - max(since, looked) > _LOOK_SECONDS:
                for process in self.each:
                    process.check_stopped()
                looked = time.monotonic()
            if name == "ready" and any(figures is not None for figures in found):
                first = first or now
                self._check_together(now - first, found)
        return [figures for figures in found if figures is not None]

    def resume(self, told: float | None = None) -> None:
        """Let all go on after an event (see `TrialHandle.resume`). Raises TrialFailed where a process has ended."""
        for process in self.each:
            process.resume(told)

    def pids(self) -> list[int]:
        """Process ids of all processes and of their living descendants."""
        return [pid for process in self.each for pid in process.pids()]

    def wait(self) -> None:
        """Wait until all have closed their connections and ended. Raises TrialFailed."""
        for process in self.each:
            process.wait()

    def _receive(self) -> bool:
        """Wait half a second for a part of an event. Raises TrialFailed where a process has ended."""
        ready = [descriptor for descriptor, _ in self._poll.poll(_TICK_SECONDS * 1000)]
        received = [process.receive(ready) for process in self.each]
        return any(received)

    def _check_together(self, waited: float, found: list[dict[str, Any] | None]) -> None:
        """Raises TrialFailed where a shard is ready much later than the first."""
        if waited > READY_SECONDS:
            missing = ", ".join(f"shard {number}" for number, figures in enumerate(found, 1) if figures is None)
            raise TrialFailed(
                f"not all shards were ready within {READY_SECONDS:g} s of the first; waited for {missing}"
            )
