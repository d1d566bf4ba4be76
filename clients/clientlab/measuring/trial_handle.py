"""A process of a trial as its parent sees it, and the Python that runs it: the lab's own, or that of an environment."""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from clientlab import child_processes
from clientlab.measuring.context import CONTEXT_FILE, output_file

_OF_ANOTHER = frozenset({"PYTHONHOME", "PYTHONPATH", "PYTHONEXECUTABLE", "VIRTUAL_ENV", "__PYVENV_LAUNCHER__"})
"""Variables that would lead one Python to the libraries of another."""


@dataclass(frozen=True)
class Interpreter:
    """A Python program. `lab`: a folder with the lab's package and nothing else; None for the lab's own Python.

    The trial's process needs the lab's package, the standard library, and the strategy's own libraries. An environment
    has the last two.
    """

    program: str = sys.executable
    lab: str | None = None

    def command(self, module: str, *arguments: str) -> list[str]:
        """The command line that runs a module of the lab.

        Without `-P`, packages in the current folder would take the place of those that are installed: in a clone of
        httpx, all environments would measure that clone.
        """
        return [self.program, "-P", "-m", module, *arguments]

    def variables(self) -> dict[str, str]:
        """The environment variables of its processes."""
        if self.lab is None:
            return dict(os.environ)
        return {name: value for name, value in os.environ.items() if name not in _OF_ANOTHER} | {"PYTHONPATH": self.lab}


OWN = Interpreter()
"""The lab's own."""


PATIENCE = 30.0

PROXY_VARIABLES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
"""In lower case: names of environment variables that lead requests to a proxy."""


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
        """Start the process on these CPUs; the file of its context is in the folder. Raises OSError."""
        self.shard = shard
        self._name = f"shard {shard + 1} of {shards}: " if shards > 1 else ""
        self._log = folder / output_file(shard, shards)
        context = os.open(folder / CONTEXT_FILE, os.O_RDONLY)
        self._events, child_events = os.pipe()
        child_input, self._input = os.pipe()
        environment = {k: v for k, v in interpreter.variables().items() if k.lower() not in PROXY_VARIABLES}
        # Otherwise some clients send the passwords of ~/.netrc, and others do not. The path cannot exist: requests and
        # niquests would open an existing empty file for each request.
        environment["NETRC"] = f"{os.devnull}/none"
        inherited = [context, child_events]
        command = interpreter.command("clientlab.measuring.trial_process", *map(str, (*inherited, shard)))
        self._process = child_processes.start(command, self._log, environment, inherited, stdin=child_input, cpus=cpus)
        os.close(context)
        os.close(child_events)
        os.close(child_input)
        self._unread = b""
        # Processes of a pool inherit the pipe's other end, and keep it open when the trial's own process has ended.
        self._ended = _pidfd(self._process.pid)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        child_processes.stop(self._process, patience=0)
        for descriptor in (self._input, self._events, self._ended):
            if descriptor is not None:
                os.close(descriptor)

    @property
    def pid(self) -> int:
        return self._process.pid

    def watch(self, poll: select.poll) -> None:
        """Let a poll end when the process sends something, and when it has ended."""
        for descriptor in (self._events, self._ended):
            if descriptor is not None:
                poll.register(descriptor, select.POLLIN)

    def receive(self, ready: Collection[int]) -> bool:
        """Read what the process has sent, if its descriptor is among those that are ready; whether it was.

        Raises TrialFailed where the process has ended.
        """
        if self._events in ready and (block := os.read(self._events, 65536)):
            self._unread += block
            return True
        if self._events in ready or self._process.poll() is not None:
            raise TrialFailed(self._how_it_ended())
        return False

    def event(self, name: str) -> dict[str, Any] | None:
        """The next event, which must be `name`, with its figures; None if it has not come. Raises TrialFailed."""
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
        """Let the process go on after an event. Raises TrialFailed where it has ended.

        `told`: when the measured part begins, in seconds of the monotonic clock, or the number of the first request of
        a slice; None: nothing.
        """
        try:
            os.write(self._input, b"\n" if told is None else f"{told!r}\n".encode())
        except BrokenPipeError:
            raise TrialFailed(self._how_it_ended()) from None

    def pids(self) -> list[int]:
        """Process ids of this process and of all its living descendants."""
        return child_processes.with_descendants(self.pid)

    def wait(self) -> None:
        """Wait until the process has closed its connections and ended. Raises TrialFailed."""
        if self._ended is not None:  # without it, Popen looks in steps that grow to 50 ms
            ended = select.poll()  # unlike select(), it takes file descriptors of any number
            ended.register(self._ended, select.POLLIN)
            ended.poll(1000 * PATIENCE)
        try:
            self._process.wait(timeout=PATIENCE if self._ended is None else 0)
        except subprocess.TimeoutExpired:
            raise TrialFailed(f"{self._name}did not end within {PATIENCE:g} s of its last request") from None

    def check_stopped(self) -> None:
        """Raises TrialFailed where this process or a child is stopped, as by SIGSTOP: it would never go on."""
        if stopped := child_processes.stopped(self.pid):
            raise TrialFailed(f"{self._name}frozen: its process {stopped[0]} is stopped")

    def _how_it_ended(self) -> str:
        return f"{self._name}its process {child_processes.how_it_ended(self._process, self._log)}"


def _pidfd(pid: int) -> int | None:
    """A file descriptor that is readable as soon as the process has ended (pidfd_open(2)); None without one.

    Without one (not Linux, or a sandbox that forbids it), the end is noticed within half a second.
    """
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            return os.pidfd_open(pid)
    return None
