"""The processes of a trial as their parent sees them, and the Python that runs them."""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import select
import subprocess
import sys
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any, Self

from clientlab.machine import child_processes
from clientlab.machine.distributions import unrelated_modules
from clientlab.strategies import list_imports
from clientlab.trial.context import CONTEXT_FILE, TrialContext

# Environment variables that would lead one Python to the libraries of another, or
# requests to a proxy (in any case).
_OF_ANOTHER_PYTHON = frozenset(
    {
        "PYTHONHOME",
        "PYTHONPATH",
        "PYTHONEXECUTABLE",
        "VIRTUAL_ENV",
        "__PYVENV_LAUNCHER__",
    }
)
_PROXY_VARIABLES = frozenset({"http_proxy", "https_proxy", "all_proxy", "no_proxy"})

_COLD_START = str(Path(__file__).parents[1] / "trial" / "cold_start.py")
_TICK_MILLISECONDS = 500
_ENDING_SECONDS = 30.0


@dataclass(frozen=True)
class Interpreter:
    """A Python program, which has the strategy's own libraries."""

    program: str = sys.executable

    lab: str | None = None
    """Folder of the lab's package alone, for a Python that does not have it.

    None: the lab's own Python.
    """

    def command(self, module: str, *arguments: str) -> list[str]:
        """Return the command line that runs a module of the lab."""
        # -P keeps packages in the current folder, for example a clone of httpx, from
        # replacing installed ones.
        return [self.program, "-P", "-m", module, *arguments]

    def variables(self) -> dict[str, str]:
        """Return the environment variables of its processes."""
        if self.lab is None:
            return dict(os.environ)
        variables = {
            name: value
            for name, value in os.environ.items()
            if name not in _OF_ANOTHER_PYTHON
        }
        return variables | {"PYTHONPATH": self.lab}


OWN = Interpreter()  # the lab's own


class TrialFailed(Exception):
    """The strategy could not do its workload; the reason in one line."""


class TrialVanished(TrialFailed):
    """The trial failed between two slices, so nothing that was measured ended it."""


class TrialStalled(TrialFailed):
    """No request finished for longer than a request may take."""


class ProcessEnded(TrialFailed):
    """A process of the trial has ended before its time."""


class ProcessHandle:
    """One process of a trial.

    It and all its children are one process group, which is killed at the end.
    """

    def __init__(
        self,
        context: TrialContext,
        interpreter: Interpreter,
        shard: int,
        cpus: Collection[int] = (),
    ) -> None:
        """Start the process on these CPUs; the file of its context is in its folder.

        Raise OSError.
        """
        folder = Path(context.folder)
        self.shard = shard
        self._name = ""
        self._log = folder / "trial.log"
        if context.shards > 1:
            self._name = f"shard {shard + 1} of {context.shards}: "
            self._log = folder / f"trial-{shard + 1}.log"
        context_file = os.open(folder / CONTEXT_FILE, os.O_RDONLY)
        events, child_events = os.pipe()
        self.events = os.fdopen(events, "rb")
        child_input, self._input = os.pipe()
        inherited = [context_file, child_events]
        arguments = [str(number) for number in (*inherited, shard)]
        self._process = child_processes.start(
            _make_command(context, interpreter, arguments),
            self._log,
            _make_environment(interpreter),
            inherited,
            stdin=child_input,
            cpus=cpus,
        )
        if context.workload.cold:
            # The interpreter has begun now: to fork this large process took time.
            os.write(self._input, f"{perf_counter()!r}\n".encode())
        for descriptor in (*inherited, child_input):
            os.close(descriptor)

    def close(self) -> None:
        child_processes.stop(self._process, patience=0)
        os.close(self._input)
        self.events.close()

    @property
    def pid(self) -> int:
        return self._process.pid

    def read_event(self, name: str) -> dict[str, Any]:
        """Return the figures of the event that has come, which must be `name`.

        Raise TrialFailed.
        """
        line = self.events.readline()
        if not line:
            raise ProcessEnded(self._describe_end())
        figures: dict[str, Any] = json.loads(line)
        event = figures.pop("event")
        if event == "failed":
            raise TrialFailed(self._name + figures["reason"])
        if event != name:
            raise TrialFailed(
                f"{self._name}the trial sent the event {event!r} instead of {name!r}"
            )
        return figures

    def check_alive(self) -> None:
        """Raise ProcessEnded if the process has ended.

        A pool's processes may keep the pipe open for longer.
        """
        if self._process.poll() is not None:
            raise ProcessEnded(self._describe_end())

    def resume(self, answer: float | None) -> None:
        """Let the process go on after an event; `answer` as in `process.py`.

        Raise TrialFailed if it has ended.
        """
        try:
            os.write(self._input, b"\n" if answer is None else f"{answer!r}\n".encode())
        except BrokenPipeError:
            raise ProcessEnded(self._describe_end()) from None

    def pids(self) -> list[int]:
        """Return the ids of this process and of all its living descendants."""
        return child_processes.with_descendants(self.pid)

    def wait(self) -> None:
        """Wait until the process has closed its connections and ended.

        Raise TrialFailed.
        """
        try:
            self._process.wait(_ENDING_SECONDS)
        except subprocess.TimeoutExpired:
            raise TrialFailed(
                f"{self._name}did not end within {_ENDING_SECONDS:g} s of its last"
                " request"
            ) from None

    def _describe_end(self) -> str:
        end = child_processes.describe_end(self._process, self._log)
        return f"{self._name}its process {end}"


def _make_command(
    context: TrialContext, interpreter: Interpreter, arguments: Sequence[str]
) -> list[str]:
    if not context.workload.cold:
        return interpreter.command("clientlab.trial.process", *arguments)
    modules = list_imports(context.strategy)
    # The lab's packages would slow libraries down. An environment has what its user
    # wants to measure.
    hidden = unrelated_modules(*modules) if interpreter.lab is None else []
    names = [" ".join(modules), " ".join(hidden)]
    return [interpreter.program, "-P", _COLD_START, *names, *arguments]


def _make_environment(interpreter: Interpreter) -> dict[str, str]:
    environment = {
        name: value
        for name, value in interpreter.variables().items()
        if name.lower() not in _PROXY_VARIABLES
    }
    # Otherwise some clients send the passwords of ~/.netrc, and others do not. The path
    # cannot exist: requests and niquests would open an existing empty file for each
    # request.
    environment["NETRC"] = f"{os.devnull}/none"
    return environment


class TrialProcesses:
    """The processes of a trial, one for each shard. Leaving the context kills them."""

    def __init__(
        self,
        context: TrialContext,
        interpreter: Interpreter,
        cpus: Collection[int] = (),
    ) -> None:
        """Start the processes on these CPUs, with the context in a file.

        The context may be large. Raise OSError.
        """
        folder = Path(context.folder)
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / CONTEXT_FILE
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        with os.fdopen(os.open(file, flags, 0o600), "wb") as opened:
            opened.write(pickle.dumps(context))
        # Unlike select(), it takes file descriptors of any number.
        self._poll = select.poll()
        self.each: list[ProcessHandle] = []
        with contextlib.ExitStack() as started:
            try:
                for shard in range(context.shards):
                    process = ProcessHandle(context, interpreter, shard, cpus)
                    started.callback(process.close)
                    self.each.append(process)
                    self._poll.register(process.events, select.POLLIN)
            finally:
                # Each process has it open; it may hold secrets, and the folder of a
                # failed trial stays.
                file.unlink()
            self._started = started.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._started.close()

    def wait_for(self, name: str, look: Callable[[], object]) -> list[dict[str, Any]]:
        """Return the figures of each process's next event, which must be `name`.

        `look` is called every half second until all have come. Raise TrialFailed if the
        trial failed or ended.
        """
        look()
        figures: dict[int, dict[str, Any]] = {}
        while len(figures) < len(self.each):
            ready = {
                descriptor for descriptor, _ in self._poll.poll(_TICK_MILLISECONDS)
            }
            for process in self.each:
                if process.events.fileno() in ready:
                    figures[process.shard] = process.read_event(name)
                elif not ready:
                    process.check_alive()
            if not ready:
                look()
        return [figures[process.shard] for process in self.each]

    def resume(self, answer: float | None = None) -> None:
        """Let all go on after an event (see `ProcessHandle.resume`).

        Raise TrialFailed if a process has ended.
        """
        for process in self.each:
            process.resume(answer)

    def pids(self) -> list[int]:
        """Return the ids of all processes and of their living descendants."""
        pids: list[int] = []
        for process in self.each:
            pids += process.pids()
        return pids
