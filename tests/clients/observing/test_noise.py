"""What disturbed a trial: counters of the kernel, and threads that wait for a lock."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from clientlab.observing.noise import (
    Disturbance,
    LockWaits,
    compute_disturbance,
    read_machine,
    read_threads,
)

TICK = os.sysconf("SC_CLK_TCK")


def write_counters(
    root, *, busy: int, steal: int, total: int, threads: dict[int, int]
) -> None:
    """Write these counters, in ticks (`busy`, `steal`), microseconds (`total`) and
    nanoseconds (`threads`).
    """
    (root / "proc/pressure").mkdir(parents=True, exist_ok=True)
    stat = f"cpu  {busy} 10 20 9999 500 3 {busy} {steal} 77 0\ncpu0 1 1 1 1\nintr 5\n"
    (root / "proc/stat").write_text(stat)
    pressure = f"some avg10=1.00 avg60=0.00 total={total}\nfull avg10=0.00 total=9\n"
    (root / "proc/pressure/cpu").write_text(pressure)
    for name, delay in threads.items():
        task = root / f"proc/7/task/{name}"
        task.mkdir(parents=True, exist_ok=True)
        (task / "schedstat").write_text(f"123 {delay} 9\n")


def test_a_disturbance_is_the_growth_of_every_counter(tmp_path):
    """In seconds. The counter of a new thread began at zero."""
    write_counters(
        tmp_path, busy=100, steal=5, total=1_000_000, threads={7: 4_000_000, 8: 0}
    )
    machine = read_machine(tmp_path)
    threads = read_threads([7, 99], tmp_path)
    write_counters(
        tmp_path,
        busy=350,
        steal=7,
        total=1_250_000,
        threads={7: 9_000_000, 9: 1_000_000},
    )
    machines = [(machine, read_machine(tmp_path))]
    waits = [(threads, read_threads([7], tmp_path))]
    found = compute_disturbance(machines, waits)
    # Without this process's own.
    assert found.machine_cpu_seconds == pytest.approx(250 / TICK, abs=0.05)
    assert found.steal_seconds == pytest.approx(2 / TICK)
    assert found.cpu_pressure_seconds == pytest.approx(0.25)
    assert found.run_delay_seconds == pytest.approx(0.006)
    assert found.seconds > 0


def test_a_counter_that_the_system_does_not_show_is_unknown(tmp_path):
    """Not 0. Only the busy share is read from the real machine, so it may be known."""
    machine = read_machine(tmp_path)
    threads = read_threads([7], tmp_path)
    machines = [(machine, read_machine(tmp_path))]
    found = compute_disturbance(machines, [(threads, threads)])
    assert found == Disturbance(seconds=found.seconds, busy_share=found.busy_share)


THREADS = """
import socket, sys, threading, time
lock, pair = threading.Lock(), socket.socketpair()
lock.acquire()
waits = {
    "lock": lock.acquire,
    "sleep": lambda: time.sleep(60),
    "socket": lambda: pair[0].recv(1),
}
for name in sys.argv[1:]:
    threading.Thread(target=waits[name], daemon=True).start()
print(flush=True)
sys.stdin.read()
"""


def wait_until_asleep(task: Path) -> None:
    while (task / "wchan").read_text(encoding="ascii") in {"", "0"}:
        os.sched_yield()


@pytest.mark.real
@pytest.mark.skipif(
    not Path("/proc/self/wchan").exists(), reason="the system shows no wait channel"
)
@pytest.mark.parametrize(
    ("waits", "share"),
    [(["sleep", "socket"], 0.0), (["lock", "sleep", "socket", "lock"], 0.5)],
)
def test_only_threads_that_wait_for_a_lock_count(waits, share):
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", THREADS, *waits]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe) as process:
        try:
            assert process.stdout.readline() == b"\n"
            for task in Path(f"/proc/{process.pid}/task").iterdir():
                if task.name != str(process.pid):
                    wait_until_asleep(task)
            found = LockWaits(lambda: [process.pid])
            found.look()
            assert found.share == share
        finally:
            process.kill()


def test_threads_without_more_work_are_not_looked_at(tmp_path):
    """After the trial's duration, threads wait for work, which must not count as a
    lock.
    """
    channels = []
    for thread in ("2", "3"):
        task = tmp_path / "1" / "task" / thread
        task.mkdir(parents=True)
        channels.append(task / "wchan")
    first, second = channels
    first.write_text("futex_do_wait", encoding="ascii")
    second.write_text("unix_stream_read_generic", encoding="ascii")
    found = LockWaits(lambda: [1], tmp_path)
    found.look()
    second.write_text("futex_do_wait", encoding="ascii")
    found.until = time.perf_counter()
    found.look()
    assert found.share == 0.5
