"""Child processes of the lab: each in its own process group, and none outlives the lab."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
MOST_OUTPUT = 64 << 10
_SET_PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of Linux' prctl(2)
_LISTS_CHILDREN = Path(f"/proc/self/task/{os.getpid()}/children").exists()
"""Whether the kernel lists the children of a process (CONFIG_PROC_CHILDREN of Linux)."""


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
    """Start a program. Its output goes to `log`, or else to the lab's own output. Raise OSError.

    `stdin`, `stdout`, `stderr`: as for `subprocess.Popen`. `cpus`: those that the program and its children may use, on
    Linux; empty means those of this process. Its own process group keeps the terminal's Ctrl-C away: the lab decides
    which process stops, and when.
    """
    with contextlib.nullcontext() if log is None else log.open("ab") as output, _signals_wait() as mask:
        return subprocess.Popen(
            command,
            stdin=stdin,
            stdout=output if stdout is None else stdout,
            stderr=output if stderr is None else stderr,
            pass_fds=tuple(descriptors),
            start_new_session=True,
            env=dict(environment),
            preexec_fn=_arrange(os.getpid(), mask, cpus) if sys.platform == "linux" else None,  # noqa: PLW1509
        )


def answer(
    command: Sequence[str], given: bytes, environment: Mapping[str, str], patience: float
) -> subprocess.CompletedProcess[bytes]:
    """Return what a program writes when it gets `given` on its standard input, and kill its process group.

    Raise OSError, and subprocess.TimeoutExpired after `patience` seconds.
    """
    pipe = subprocess.PIPE
    process = start(command, None, environment, stdin=pipe, stdout=pipe, stderr=pipe)
    try:
        out, error = process.communicate(given, timeout=patience)
        return subprocess.CompletedProcess(command, process.returncode, out, error)
    finally:
        with contextlib.suppress(ProcessLookupError):  # the whole group has ended
            os.killpg(process.pid, signal.SIGKILL)
        with process:  # closes the pipes, and waits
            pass


def stop(process: subprocess.Popen[bytes], patience: float) -> None:
    """Terminate a program. After `patience` seconds, kill it and its process group."""
    if process.poll() is None and patience > 0:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):  # killed below, with its children
            process.wait(patience)
    with contextlib.suppress(ProcessLookupError):  # the whole group has ended
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def stopped(pid: int) -> list[int]:
    """Return the processes among a process and its descendants that a signal such as SIGSTOP has stopped (Linux)."""
    found = []
    for one in with_descendants(pid):
        with contextlib.suppress(OSError):  # it has ended, or this is not Linux
            stat = Path(f"/proc/{one}/stat").read_text(encoding="utf-8", errors="replace")
            if stat.rpartition(") ")[2].startswith("T"):
                found.append(one)
    return found


def with_descendants(pid: int) -> list[int]:
    """Return the ids of a process and all its living descendants. One that starts or ends meanwhile may be missed."""
    if not _LISTS_CHILDREN:
        import psutil  # noqa: PLC0415 - it reads the parent of each process of the machine, which takes 2 ms

        with contextlib.suppress(psutil.NoSuchProcess):
            return [pid, *(child.pid for child in psutil.Process(pid).children(recursive=True))]
    found = [pid]
    for one in found:  # which grows
        with contextlib.suppress(OSError):  # it has ended
            for thread in Path(f"/proc/{one}/task").iterdir():
                found += map(int, Path(thread, "children").read_bytes().split())
    return found


def last_lines(path: Path) -> str:
    """Return the whole lines within the last `MOST_OUTPUT` bytes, where the error is. Raise OSError."""
    with path.open("rb") as file:
        beyond = max(0, file.seek(0, os.SEEK_END) - MOST_OUTPUT)
        file.seek(max(0, beyond - 1))
        content = file.read(MOST_OUTPUT + 1)
    return (content.partition(b"\n")[2] if beyond else content).decode(errors="replace")


def how_it_ended(process: subprocess.Popen[bytes], log: Path) -> str:
    """Return how a program ended, with the last line of its log."""
    code = process.wait()
    how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
    lines = [line for line in last_lines(log).splitlines() if line.strip()]
    return how + (f": {lines[-1].strip()}" if lines else "")


@contextlib.contextmanager
def _signals_wait() -> Iterator[set[int]]:
    """Hold back signals that end the lab while a process is forked, and yield the previous mask.

    Otherwise, Ctrl-C could be lost in a hook of fork(), or leave a process without a handle.
    """
    held = _ENDING if sys.platform == "linux" else ()  # only there does `start` unblock them in the child
    before = {int(number) for number in signal.pthread_sigmask(signal.SIG_BLOCK, held)}
    try:
        yield before
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _arrange(parent: int, mask: set[int], cpus: Collection[int]) -> Callable[[], None]:
    """Return a function for the new process, which lets the kernel terminate it when the lab is killed."""
    prctl = ctypes.CDLL(None, use_errno=True).prctl

    def arrange() -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGTERM)
        if cpus:
            os.sched_setaffinity(0, cpus)
        if os.getppid() != parent:
            os._exit(1)

    return arrange
