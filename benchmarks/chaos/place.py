"""Where an incident is played: a folder with results, temporary files and logs, and the processes of its mark."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import psutil

from clientlab.results.document import Run
from clientlab.results.store import Store

_MARK = "CLIENTLAB_CHAOS"
_MOMENT = 0.005
_TRIAL = "clientlab.measuring.trial_process"


class Missed(Exception):
    """The victim was not there at its moment."""


class Place:
    """All processes that are started here have the mark in their environment, and so have all that they start."""

    def __init__(self, folder: Path) -> None:
        self.results = Store(folder / "results")
        self.temporary = folder / "tmp"
        self.temporary.mkdir()
        self._folder = folder
        self._started: list[subprocess.Popen[bytes]] = []

    def start(self, words: list[str], more: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
        """The command `clientlab`. Its output goes to a log of its own."""
        environment = {**os.environ, _MARK: str(self._folder), "TMPDIR": str(self.temporary), **(more or {})}
        with self.log(len(self._started)).open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "clientlab", *words],
                cwd=self._folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment,
            )  # fmt: skip
        self._started.append(process)
        return process

    def log(self, number: int) -> Path:
        return self._folder / f"{number}.log"

    def said(self, process: subprocess.Popen[bytes]) -> str:
        """What a started process has printed."""
        return self.log(self._started.index(process)).read_text(encoding="utf-8")

    def run(self) -> Run | None:
        """The run as it is saved; None before it has a file."""
        return self.results.read("last") if self.results.names() else None

    def processes(self) -> list[psutil.Process]:
        """Those with the mark that have not ended."""
        return [one for one in psutil.process_iter() if self._is_marked(one)]

    def _is_marked(self, process: psutil.Process) -> bool:
        try:
            mine = process.environ().get(_MARK) == str(self._folder)
            return mine and process.status() != psutil.STATUS_ZOMBIE
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            return False

    def end(self) -> None:
        """Kill whatever has the mark."""
        for one in self.processes():
            with contextlib.suppress(psutil.NoSuchProcess):
                one.send_signal(signal.SIGKILL)
        for process in self._started:
            process.wait()


def find(processes: list[psutil.Process], victim: str, pick: int, trial: int) -> psutil.Process | None:
    """The victim among the processes; one of those that are alike, by `pick`."""
    commands = {one.pid: _command(one) for one in processes}
    found = [one for one in processes if _is(one, victim, commands, f"trial-{trial:04d}")]
    return sorted(found, key=lambda one: one.pid)[pick % len(found)] if found else None


def _is(process: psutil.Process, victim: str, commands: dict[int, str], trial: str) -> bool:
    """Whether a process is of that kind. A process of a pool, and a server's worker, has its parent's command line."""
    own = commands[process.pid]
    try:
        like_parent = commands.get(process.ppid()) == own
    except psutil.NoSuchProcess:
        return False
    program, inner = _KINDS[victim]
    return program in own and like_parent == inner and (program != _TRIAL or trial in own)


_KINDS = {
    "trial": (_TRIAL, False),
    "trial with a pool": (_TRIAL, False),
    "pool child": (_TRIAL, True),
    "upstream master": ("gunicorn", False),
    "upstream worker": ("gunicorn", True),
    "proxy": ("caddy run", False),
    "job": ("clientlab.worker.job", False),
}
"""Victim → a part of its command line, and whether that is its parent's, too."""


def _command(process: psutil.Process) -> str:
    with contextlib.suppress(psutil.NoSuchProcess):
        return " ".join(process.cmdline())
    return ""


def is_alive(process: psutil.Process) -> bool:
    """Whether it has not ended, reaped or not."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def awaited(holds: Callable[[], bool], seconds: float) -> bool:
    """Whether it holds within so many seconds."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(_MOMENT)
    return True
