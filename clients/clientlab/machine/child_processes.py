"""Child processes of the lab: each has its own group, and none outlives the lab."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

_MOST_OUTPUT = 64 << 10
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_SET_PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of Linux' prctl(2)
# CONFIG_PROC_CHILDREN of Linux.
_LISTS_CHILDREN = Path(f"/proc/self/task/{os.getpid()}/children").exists()


def start(  # noqa: PLR0913 - where a program's input and output go, and where it runs
    command: Sequence[str],
    log: Path | None,
    environment: Mapping[str, str],
    descriptors: Sequence[int] = (),
    *,
    stdin: int = subprocess.DEVNULL,
    stdout: int | None = None,
    stderr: int | None = None,
    cpus: Collection[int] = (),
) -> subprocess.Popen[bytes]:
    """Start a program. Its output goes to `log`, or without one to the lab's own.

    Raise OSError.

    `stdin`, `stdout`, `stderr`: as for `subprocess.Popen`. `cpus`: on Linux, those that
    it may use; empty means all. The new process group does not get the terminal's
    Ctrl-C, because the lab decides which process stops, and when.
    """
    # Without this, Ctrl-C during a fork could be lost in a hook of fork(), or leave a
    # process without a handle. What the child prepares unblocks the signals there, but
    # only on Linux.
    blocked = _ENDING if sys.platform == "linux" else ()
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, blocked)
    try:
        with contextlib.nullcontext() if log is None else log.open("ab") as output:
            return subprocess.Popen(
                command,
                stdin=stdin,
                stdout=output if stdout is None else stdout,
                stderr=output if stderr is None else stderr,
                pass_fds=tuple(descriptors),
                start_new_session=True,
                env=dict(environment),
                preexec_fn=_make_preparation(cpus, mask),  # noqa: PLW1509
            )
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _make_preparation(
    cpus: Collection[int], mask: Collection[int]
) -> Callable[[], None] | None:
    """Return what the child does before it runs its program: on Linux only.

    It runs between fork and exec, also in programs with other threads. So it takes no
    lock that one of these may hold: it imports nothing, and calls only the kernel.
    """
    if sys.platform != "linux":
        return None
    parent = os.getpid()
    prctl = ctypes.CDLL(None, use_errno=True).prctl

    def prepare() -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGTERM)
        if cpus:
            os.sched_setaffinity(0, cpus)
        if os.getppid() != parent:
            os._exit(1)

    return prepare


def run_with_input(
    command: Sequence[str],
    given: bytes,
    environment: Mapping[str, str],
    patience: float,
) -> subprocess.CompletedProcess[bytes]:
    """Return what a program writes, given some input, and kill its process group.

    Raise OSError or TimeoutExpired.
    """
    pipe = subprocess.PIPE
    process = start(command, None, environment, stdin=pipe, stdout=pipe, stderr=pipe)
    with process:  # closes the pipes
        try:
            out, error = process.communicate(given, timeout=patience)
            return subprocess.CompletedProcess(command, process.returncode, out, error)
        finally:
            stop(process, patience=0)


def stop(process: subprocess.Popen[bytes], patience: float) -> None:
    """Terminate a program. After `patience` seconds, kill it and its process group."""
    if process.poll() is None and patience > 0:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):  # it is killed below
            process.wait(patience)
    with contextlib.suppress(ProcessLookupError):  # the whole group has ended
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def with_descendants(pid: int) -> list[int]:
    """Return the ids of a process and its living descendants.

    Those that start or end meanwhile may be missing.
    """
    pids = [pid]
    if not _LISTS_CHILDREN:
        # It reads the parent of every process of the machine, which takes 2 ms.
        import psutil  # noqa: PLC0415

        with contextlib.suppress(psutil.NoSuchProcess):
            children = psutil.Process(pid).children(recursive=True)
            pids += [child.pid for child in children]
        return pids
    for process in pids:  # which grows
        with contextlib.suppress(OSError):  # it has ended
            for thread in Path(f"/proc/{process}/task").iterdir():
                pids += map(int, Path(thread, "children").read_bytes().split())
    return pids


def describe_end(process: subprocess.Popen[bytes], log: Path) -> str:
    """Return how a program ended, with the last line of its log."""
    code = process.wait()
    text = f"ended with code {code}"
    if code < 0:
        text = f"was ended by {signal.Signals(-code).name}"
    with log.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _MOST_OUTPUT))
        lines = file.read().decode(errors="replace").strip().splitlines()
    if lines:
        text += f": {lines[-1].strip()}"
    return text
