"""Threads that wait for a lock are seen as such, and others are not."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from clientlab.measuring.lock_waits import LockWaits

THREADS = """
import socket, sys, threading, time
lock, pair = threading.Lock(), socket.socketpair()
lock.acquire()
waits = {"lock": lock.acquire, "sleep": lambda: time.sleep(60), "socket": lambda: pair[0].recv(1)}
for name in sys.argv[1:]:
    threading.Thread(target=waits[name], daemon=True).start()
print(flush=True)
sys.stdin.read()
"""


def is_asleep(task: Path) -> bool:
    """Whether the kernel shows what the thread waits for."""
    return (task / "wchan").read_text(encoding="ascii") not in {"", "0"}


@pytest.mark.real
@pytest.mark.skipif(not Path("/proc/self/wchan").exists(), reason="the system shows no wait channel")
@pytest.mark.parametrize(
    ("waits", "share"),
    [(["sleep", "socket"], 0.0), (["lock", "sleep", "socket", "lock"], 0.5)],
)
def test_only_threads_that_wait_for_a_lock_count(waits, share):
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", THREADS, *waits], stdin=pipe, stdout=pipe) as process:
        try:
            assert process.stdout.readline() == b"\n"
            tasks = [task for task in Path(f"/proc/{process.pid}/task").iterdir() if task.name != str(process.pid)]
            while not all(map(is_asleep, tasks)):
                os.sched_yield()
            found = LockWaits(lambda: [process.pid])
            found.look()
            assert found.share == share
        finally:
            process.kill()


def test_threads_without_more_work_are_not_looked_at(tmp_path):
    """After the trial's duration, threads wait for work: that is no lock."""
    for thread, channel in {"2": "futex_do_wait", "3": "unix_stream_read_generic"}.items():
        task = tmp_path / "1" / "task" / thread
        task.mkdir(parents=True)
        (task / "wchan").write_text(channel, encoding="ascii")
    found = LockWaits(lambda: [1], tmp_path)
    found.look()
    (tmp_path / "1/task/3/wchan").write_text("futex_do_wait", encoding="ascii")
    found.until = time.perf_counter()
    found.look()
    assert found.share == 0.5
