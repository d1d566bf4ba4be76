"""py-spy beside a trial: recorders that start when the trial is ready, and end when its measured part is over."""

from __future__ import annotations

import contextlib
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Literal, cast

import psutil

from clientlab import child_processes
from clientlab.file_end import last_lines

View = Literal["timer", "native", "gil", "waiting"]
"""What is seen: Python's frames, by the trial itself; by py-spy: native frames too, the GIL's holder, idle threads."""

VIEWS: dict[View, tuple[str, ...]] = {
    "native": ("--native",),
    "gil": ("--nonblocking", "--gil"),
    "waiting": ("--native", "--idle"),
}
"""View of py-spy → options. All but `gil` pause the process for each sample."""

_PROGRAM = "py-spy"
_ERRORS = re.compile(rb"Errors: (\d+)")
_READY = b"Sampling process"
_PATIENCE = 60.0
"""Seconds until a recorder has read the symbols of the process, and until it has written what it saw."""

INSTALL = "install py-spy (`pip install 'clientlab[profile]'`)"


class ProfilerRefused(Exception):
    """The profiler cannot look at the trial; the reason in one line, with what to do."""


def program() -> str:
    """The path of py-spy: beside the lab's own Python, or on the PATH. Raises ProfilerRefused without it."""
    beside = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    found = shutil.which(_PROGRAM, path=beside)
    if found is None:
        raise ProfilerRefused(f"py-spy is not installed; {INSTALL}")
    return found


def version() -> str:
    """The name and the version of the profiler: ``py-spy 0.4.3``. Raises ProfilerRefused without it."""
    answer = subprocess.run([program(), "--version"], capture_output=True, text=True, timeout=_PATIENCE, check=False)
    return answer.stdout.strip() or _PROGRAM


@dataclass
class Profiler:
    """Records a trial's processes in one view, `rate` times a second, and for so many seconds at most.

    `folder`: where the recordings are written. `children`: whether the trial's processes have child processes that
    are looked at too. `cpus`: the only ones that the recorders may use. `files` is known behind the measured part, and
    so are `kernel_share`, the part of the processes' CPU time that the kernel took, without that of their children, and
    `failures`, how many samples could not be read because the process ran on meanwhile.
    """

    view: View
    rate: int
    seconds: int
    folder: Path
    children: bool = False
    cpus: Collection[int] = ()
    files: list[Path] = field(default_factory=list)
    kernel_share: float | None = None
    failures: int = 0
    _recorders: list[_Recorder] = field(default_factory=list)
    _pids: Sequence[int] = ()
    _times: tuple[float, float] = (0.0, 0.0)

    def take(self, pids: Sequence[int]) -> None:
        """Learn the trial's processes."""
        self._pids = pids

    def start(self) -> None:
        """Start the recorders, and wait until they record. The trial waits meanwhile. Raises ProfilerRefused."""
        options = ["--rate", str(self.rate), "--duration", str(self.seconds), *VIEWS[self.view]]
        options += ["--subprocesses"] if self.children else []
        try:
            for pid in self._pids:
                file = self.folder / f"{self.view}-{pid}.json"
                self._recorders.append(_Recorder(pid, file, options, self.cpus))
                self.files.append(file)
            for recorder in self._recorders:
                recorder.wait_until_ready()
            self._times = _times_of(self._pids)
        except BaseException:
            self.close()
            raise

    def end(self) -> None:
        """Let the recorders write what they saw. Raises ProfilerRefused where one cannot."""
        user, kernel = (now - then for now, then in zip(_times_of(self._pids), self._times, strict=True))
        if user + kernel > 0:
            self.kernel_share = min(max(kernel / (user + kernel), 0.0), 1.0)
        for recorder in self._recorders:
            recorder.interrupt()
        try:
            self.failures = sum(recorder.wait() for recorder in self._recorders)
        finally:
            self.close()

    def close(self) -> None:
        """End the recorders that still run."""
        for recorder in self._recorders:
            recorder.close()
        self._recorders.clear()


def _times_of(pids: Iterable[int]) -> tuple[float, float]:
    """CPU seconds of these processes, in Python and libraries and in the kernel."""
    user = kernel = 0.0
    for pid in pids:
        with contextlib.suppress(psutil.Error):
            times = psutil.Process(pid).cpu_times()
            user, kernel = user + times.user, kernel + times.system
    return user, kernel


class _Recorder:
    """One process of py-spy, which looks at one process."""

    def __init__(self, pid: int, file: Path, options: Iterable[str], cpus: Collection[int]) -> None:
        self._log = file.with_suffix(".log")
        file.parent.mkdir(parents=True, exist_ok=True)
        command = [program(), "record", "--pid", str(pid), "--output", str(file), "--format", "speedscope"]
        command += ["--function", "--full-filenames", *options]
        try:
            self._process = child_processes.start(
                command, self._log, child_processes.variables(), stdout=subprocess.PIPE, cpus=cpus
            )
        except OSError as error:
            raise ProfilerRefused(f"py-spy did not start: {error.strerror}") from error
        self._file = file

    def wait_until_ready(self) -> None:
        """Wait until it has read the symbols of the process and begins to record. Raises ProfilerRefused."""
        written = cast("IO[bytes]", self._process.stdout)  # started with a pipe
        found, until = b"", time.monotonic() + _PATIENCE
        poll = select.poll()  # unlike select(), it takes file descriptors of any number
        poll.register(written, select.POLLIN)
        while _READY not in found:
            ready = poll.poll(1000 * max(0.0, until - time.monotonic()))
            block = os.read(written.fileno(), 65536) if ready else b""
            if ready and not block:  # it has closed its output, and is about to end
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._process.wait(timeout=_PATIENCE)
            if not block:
                raise ProfilerRefused(self._why())
            found += block

    def interrupt(self) -> None:
        """Ask it to write what it saw. Without effect on one that has ended."""
        self._process.send_signal(signal.SIGINT)

    def wait(self) -> int:
        """Wait until it has written; how many samples it could not read. Raises ProfilerRefused where it has not."""
        try:
            written, _ = self._process.communicate(timeout=_PATIENCE)
        except subprocess.TimeoutExpired:
            raise ProfilerRefused(f"py-spy did not write what it saw within {_PATIENCE:g} s") from None
        if not self._file.exists():
            raise ProfilerRefused(self._why())
        found = _ERRORS.search(written)
        return int(found[1]) if found else 0

    def close(self) -> None:
        child_processes.stop(self._process, patience=0)
        if self._process.stdout is not None:
            self._process.stdout.close()

    def _why(self) -> str:
        """Why it recorded nothing, from its log."""
        if self._process.poll() is None:
            return f"py-spy did not begin to record within {_PATIENCE:g} s"
        lines = [line.strip() for line in last_lines(self._log).splitlines() if line.strip()]
        if any("Permission" in line or "permitted" in line for line in lines):
            return (
                "the system does not let py-spy trace the trial; run the lab as root, or allow it: "
                "`--cap-add SYS_PTRACE` for a container, `securityContext.capabilities.add: [SYS_PTRACE]` for a pod, "
                "kernel.yama.ptrace_scope=0 on Linux"
            )
        reason = next((line for line in lines if line.startswith("Error")), lines[0] if lines else "no reason given")
        return f"py-spy recorded nothing: {reason.removeprefix('Error: ')}"
