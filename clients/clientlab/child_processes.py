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

from clientlab.file_end import last_lines

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_SET_PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of Linux' prctl(2)
_LISTS_CHILDREN = Path(f"/proc/self/task/{os.getpid()}/children").exists()
"""Whether the kernel lists the children of a process (CONFIG_PROC_CHILDREN of Linux)."""


def python(module: str, *arguments: str) -> list[str]:
    """The command line that runs a module with the lab's own Python.

    By `-P`, nothing of the current folder is imported: a folder `aiohttp` or a file `json.py` there, as in the clone of
    a library, would take the place of what is installed.
    """
    return [sys.executable, "-P", "-m", module, *arguments]


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
    """Start a program. Its output goes to `log`, or to the lab's own output; `stdin` is its standard input.

    `stdout`, `stderr`: where its output goes instead, as `subprocess.PIPE`.

    `cpus`: the only ones that the program and its children may use, on Linux; without any, those of this process.

    Its own process group keeps the terminal's Ctrl-C away: the lab decides which process stops, and when.
    Raises OSError.
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
    """What a program writes when it gets `given` on its standard input. Then its process group is killed.

    Raises OSError, and subprocess.TimeoutExpired after `patience` seconds.
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
    """Of a process and its living descendants, those that a signal such as SIGSTOP has stopped.

    A process that starts or ends meanwhile may be missed.
    """
    if _LISTS_CHILDREN:
        return [one for one in with_descendants(pid) if _state(one) == "T"]
    import psutil  # noqa: PLC0415 - not on Linux, and a worker that waits is to be small

    with contextlib.suppress(psutil.NoSuchProcess):
        own = psutil.Process(pid)
        return [one.pid for one in (own, *own.children(recursive=True)) if one.status() == psutil.STATUS_STOPPED]
    return []


def with_descendants(pid: int) -> list[int]:
    """The process and all its living descendants, by their ids. One that starts or ends meanwhile may be missed."""
    if not _LISTS_CHILDREN:
        import psutil  # noqa: PLC0415 - it reads the parent of each process of the machine, which takes 2 ms

        with contextlib.suppress(psutil.NoSuchProcess):
            return [pid, *(child.pid for child in psutil.Process(pid).children(recursive=True))]
        return [pid]
    found = [pid]
    for one in found:  # which grows
        with contextlib.suppress(OSError):  # it has ended
            for thread in Path(f"/proc/{one}/task").iterdir():
                found += map(int, Path(thread, "children").read_bytes().split())
    return found


def _state(pid: int) -> str:
    """The letter of proc(5): R, S, T …; Z for a process that has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(") ")[2][0]
    except OSError:
        return "Z"


def how_it_ended(process: subprocess.Popen[bytes], log: Path) -> str:
    """How a program ended, with the last line of its log."""
    code = process.wait()
    how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
    lines = [line for line in last_lines(log).splitlines() if line.strip()]
    return how + (f": {lines[-1].strip()}" if lines else "")


@contextlib.contextmanager
def _signals_wait() -> Iterator[set[int]]:
    """Hold back signals that end the lab while a process is forked. Yields the mask of before.

    Python ignores the exception of a signal handler that runs in a hook of fork(), as `logging` has one: Ctrl-C would
    be lost. In `Popen` itself, the exception would leave a process without a handle.
    """
    held = _ENDING if sys.platform == "linux" else ()  # only there does `start` unblock them in the child
    before = {int(number) for number in signal.pthread_sigmask(signal.SIG_BLOCK, held)}
    try:
        yield before
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _arrange(parent: int, mask: set[int], cpus: Collection[int]) -> Callable[[], None]:
    """A function that runs in the new process: the kernel terminates it when the lab is killed. `mask`: of signals."""
    prctl = ctypes.CDLL(None, use_errno=True).prctl

    def arrange() -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGTERM)
        if cpus:
            os.sched_setaffinity(0, cpus)
        if os.getppid() != parent:
            os._exit(1)

    return arrange
