"""Processes that the lab starts: each in a group of its own, none of them outliving the lab."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

_SET_PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of Linux' prctl(2)


def start(
    command: Sequence[str],
    log: Path | None,
    environment: Mapping[str, str],
    descriptors: Sequence[int] = (),
    *,
    words: int = subprocess.DEVNULL,
) -> subprocess.Popen[bytes]:
    """Start a program whose output goes to `log`, or to ours without one; `words` becomes its standard input.

    A group of its own keeps a terminal's Ctrl-C from it: the lab decides what is stopped, and when.
    Raises OSError.
    """
    with contextlib.nullcontext() if log is None else log.open("ab") as output:
        return subprocess.Popen(
            command,
            stdin=words,
            stdout=output,
            stderr=output,
            pass_fds=tuple(descriptors),
            start_new_session=True,
            env=dict(environment),
            preexec_fn=_die_with(os.getpid()) if sys.platform == "linux" else None,  # noqa: PLW1509
        )


def stop(process: subprocess.Popen[bytes], patience: float) -> None:
    """Ask a program to end; after `patience` seconds, end it and all of its group."""
    if process.poll() is None and patience > 0:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):  # killed below, with what it started
            process.wait(patience)
    with contextlib.suppress(ProcessLookupError):  # the whole group has ended
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def how_it_ended(process: subprocess.Popen[bytes], log: Path) -> str:
    """How an ended program ended, and its last words."""
    code = process.wait()
    how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
    lines = [line for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    return how + (f": {lines[-1].strip()}" if lines else "")


def _die_with(parent: int) -> Callable[[], None]:
    """A function for the new process: the kernel is to end it when the lab is killed outright."""
    prctl = ctypes.CDLL(None, use_errno=True).prctl

    def arrange() -> None:
        prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGTERM)
        if os.getppid() != parent:
            os._exit(1)

    return arrange
