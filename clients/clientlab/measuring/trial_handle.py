"""The processes of a trial as their parent sees them, and the Python that runs them: the lab's or an environment's."""

from __future__ import annotations

import json
import os
import pickle
import select
import subprocess
import sys
import time
from collections.abc import Callable, Collection
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from clientlab import child_processes
from clientlab.measuring.context import CONTEXT_FILE, TrialContext, output_file
from clientlab.workload.shard_workload import READY_SECONDS

_OF_ANOTHER = frozenset({"PYTHONHOME", "PYTHONPATH", "PYTHONEXECUTABLE", "VIRTUAL_ENV", "__PYVENV_LAUNCHER__"})
"""Variables that would lead one Python to the libraries of another."""

PROXY_VARIABLES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
"""In lower case: names of environment variables that lead requests to a proxy."""

PATIENCE = 30.0
_TICK_SECONDS = 0.5
_LOOK_SECONDS = 2.0
"""After this time without progress, the lab looks whether a process of the trial is stopped, and again each time."""


@dataclass(frozen=True)
class Interpreter:
    """A Python program. `lab`: a folder with the lab's package and nothing else; None for the lab's own Python.

    The trial's process needs the lab's package, the standard library, and the strategy's own libraries. An environment
    has the last two.
    """

    program: str = sys.executable
    lab: str | None = None

    def command(self, module: str, *arguments: str) -> list[str]:
        """Return the command line that runs a module of the lab.

        `-P` keeps packages in the current folder, such as a clone of httpx, from replacing those that are installed.
        """
        return [self.program, "-P", "-m", module, *arguments]

    def variables(self) -> dict[str, str]:
        """Return the environment variables of its processes."""
        if self.lab is None:
            return dict(os.environ)
        return {name: value for name, value in os.environ.items() if name not in _OF_ANOTHER} | {"PYTHONPATH": self.lab}


OWN = Interpreter()
"""The lab's own."""


class TrialFailed(Exception):
    """The strategy could not do its workload; the reason in one line."""


class TrialVanished(TrialFailed):
    """A process of the trial ended while it waited for its next slice: nothing that was measured ended it."""


class TrialStalled(TrialFailed):
    """No request finished for longer than a request may take."""


class TrialHandle:
    """One process of a trial. It and all its children are one process group, which is killed at the end."""

    def __init__(
        self, folder: Path, interpreter: Interpreter, shard: int, shards: int, cpus: Collection[int] = ()
    ) -> None:
        """Start the process on these CPUs; the file of its context is in the folder. Raise OSError."""
        self.shard = shard
        self._name = f"shard {shard + 1} of {shards}: " if shards > 1 else ""
        self._log = folder / output_file(shard, shards)
        context = os.open(folder / CONTEXT_FILE, os.O_RDONLY)
        self.events, child_events = os.pipe()
        child_input, self._input = os.pipe()
        environment = {k: v for k, v in interpreter.variables().items() if k.lower() not in PROXY_VARIABLES}
        # Otherwise some clients send the passwords of ~/.netrc, and others do not. The path cannot exist: requests and
        # niquests would open an existing empty file for each request.
        environment["NETRC"] = f"{os.devnull}/none"
        inherited = [context, child_events]
        command = interpreter.command("clientlab.measuring.trial_process", *map(str, (*inherited, shard)))
        self._process = child_processes.start(command, self._log, environment, inherited, stdin=child_input, cpus=cpus)
        for descriptor in (*inherited, child_input):
            os.close(descriptor)
        self._unread = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        child_processes.stop(self._process, patience=0)
        os.close(self._input)
        os.close(self.events)

    @property
    def pid(self) -> int:
        return self._process.pid

    def receive(self, ready: Collection[int]) -> bool:
        """Read what the process has sent if its descriptor is ready, and return whether it was.

        Raise TrialFailed if the process has ended. A pool's processes may keep the pipe open longer than that.
        """
        if self.events in ready and (block := os.read(self.events, 65536)):
            self._unread += block
            return True
        if self.events in ready or self._process.poll() is not None:
            raise TrialFailed(self._how_it_ended())
        return False

    def event(self, name: str) -> dict[str, Any] | None:
        """Return the figures of the next event, which must be `name`, or None if it has not come. Raise TrialFailed."""
        if b"\n" not in self._unread:
            return None
        line, _, self._unread = self._unread.partition(b"\n")
        figures: dict[str, Any] = json.loads(line)
        if (event := figures.pop("event")) == "failed":
            raise TrialFailed(self._name + figures["reason"])
        if event != name:
            raise TrialFailed(f"{self._name}the trial sent the event {event!r} instead of {name!r}")
        return figures

    def resume(self, told: float | None) -> None:
        """Let the process go on after an event. Raise TrialFailed if it has ended.

        `told`: when the measured part begins, in seconds of the monotonic clock, or the number of the first request of
        a slice, or nothing.
        """
        try:
            os.write(self._input, b"\n" if told is None else f"{told!r}\n".encode())
        except BrokenPipeError:
            raise TrialFailed(self._how_it_ended()) from None

    def pids(self) -> list[int]:
        """Return the ids of this process and of all its living descendants."""
        return child_processes.with_descendants(self.pid)

    def wait(self) -> None:
        """Wait until the process has closed its connections and ended. Raise TrialFailed."""
        try:
            self._process.wait(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            raise TrialFailed(f"{self._name}did not end within {PATIENCE:g} s of its last request") from None

    def check_stopped(self) -> None:
        """Raise TrialFailed if this process or a child is stopped, as by SIGSTOP: it would never go on."""
        if stopped := child_processes.stopped(self.pid):
            raise TrialFailed(f"{self._name}frozen: its process {stopped[0]} is stopped")

    def _how_it_ended(self) -> str:
        return f"{self._name}its process {child_processes.how_it_ended(self._process, self._log)}"


class TrialProcesses:
    """The processes of a trial, one for each shard: an event has come when each has sent it. They share the log."""

    def __init__(self, context: TrialContext, interpreter: Interpreter, cpus: Collection[int] = ()) -> None:
        """Write the context into the trial's folder and start the processes on these CPUs. Raise OSError.

        The context may hold a large body, which a pipe would not take before the process has started. The file goes as
        soon as each process has it open: headers may be secret, and the folder of a failed trial stays.
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
                    process = processes.enter_context(TrialHandle(folder, interpreter, shard, context.shards, cpus))
                    self.each.append(process)
                    self._poll.register(process.events, select.POLLIN)
                self._started = processes.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._started.close()

    def event(self, name: str, progress: Callable[[], int], stall_seconds: float) -> list[dict[str, Any]]:
        """Wait for the next event of each process, which must be `name`, and return their figures.

        `progress` returns the number of finished requests; it is called every half second. Raise TrialFailed if the
        trial failed, ended or was stopped, and TrialStalled if no request finished for `stall_seconds`.
        """
        finished, since = progress(), time.monotonic()
        looked, first = since, None
        found = [process.event(name) for process in self.each]
        while None in found:
            ready = [descriptor for descriptor, _ in self._poll.poll(_TICK_SECONDS * 1000)]
            if any(process.receive(ready) for process in self.each):
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
                if now - first > READY_SECONDS:
                    missing = ", ".join(f"shard {number}" for number, figures in enumerate(found, 1) if figures is None)
                    raise TrialFailed(f"{READY_SECONDS:g} s after the first shard was ready, {missing} was not")
        return [figures for figures in found if figures is not None]

    def resume(self, told: float | None = None) -> None:
        """Let all go on after an event (see `TrialHandle.resume`). Raise TrialFailed if a process has ended."""
        for process in self.each:
            process.resume(told)

    def pids(self) -> list[int]:
        """Return the ids of all processes and of their living descendants."""
        return [pid for process in self.each for pid in process.pids()]

    def wait(self) -> None:
        """Wait until all have closed their connections and ended. Raise TrialFailed."""
        for process in self.each:
            process.wait()
