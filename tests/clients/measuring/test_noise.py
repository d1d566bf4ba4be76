"""Counters of noise: their growth, and what cannot be read."""

from __future__ import annotations

import os

import pytest

from clientlab.measuring import noise

TICK = os.sysconf("SC_CLK_TCK")


def a_system(root, *, busy: int, steal: int, total: int, threads: dict[int, int]):
    """A file system with these counters: ticks, microseconds; of threads nanoseconds."""
    (root / "proc/pressure").mkdir(parents=True, exist_ok=True)
    (root / "proc/stat").write_text(f"cpu  {busy} 10 20 9999 500 3 {busy} {steal} 77 0\ncpu0 1 1 1 1\nintr 5\n")
    (root / "proc/pressure/cpu").write_text(f"some avg10=1.00 avg60=0.00 total={total}\nfull avg10=0.00 total=9\n")
    for name, delay in threads.items():
        task = root / f"proc/7/task/{name}"
        task.mkdir(parents=True, exist_ok=True)
        (task / "schedstat").write_text(f"123 {delay} 9\n")


def test_a_disturbance_is_the_growth_of_every_counter(tmp_path):
    """In seconds; guests' time is in user time already, a new thread began at zero."""
    a_system(tmp_path, busy=100, steal=5, total=1_000_000, threads={7: 4_000_000, 8: 0})
    machine, threads = noise.machine(tmp_path), noise.threads([7, 99], tmp_path)
    a_system(tmp_path, busy=350, steal=7, total=1_250_000, threads={7: 9_000_000, 9: 1_000_000})
    found = noise.disturbance([(machine, noise.machine(tmp_path))], [(threads, noise.threads([7], tmp_path))])
    assert found.machine_cpu_seconds == pytest.approx(250 / TICK, abs=0.05)  # less this process's own
    assert found.steal_seconds == pytest.approx(2 / TICK)
    assert found.cpu_pressure_seconds == pytest.approx(0.25)
    assert found.run_delay_seconds == pytest.approx(0.006)
    assert found.seconds > 0


def test_what_the_system_does_not_show_is_unknown(tmp_path):
    """Not 0. Only the share of the cores is read of the real machine, and in steps: it may be known."""
    machine, threads = noise.machine(tmp_path), noise.threads([7], tmp_path)
    found = noise.disturbance([(machine, noise.machine(tmp_path))], [(threads, threads)])
    assert found == noise.Disturbance(found.seconds, busy_share=found.busy_share)
