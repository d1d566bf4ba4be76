"""Processes that the lab starts: how they end, and that none outlives it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import psutil
import pytest

from clientlab import child_processes
from running import eventually

pytestmark = pytest.mark.real

SLEEP = "import time; print('up', flush=True); time.sleep(600)"
SLEEPER = [sys.executable, "-c", SLEEP]
STUBBORN = [sys.executable, "-c", f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {SLEEP}"]
START_A_CHILD = """
import subprocess, sys, time
print(subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]).pid, flush=True)
time.sleep(600)
"""
LAB = """
import sys, time
from pathlib import Path
from clientlab import child_processes
command = [sys.executable, "-c", "import time; print('up', flush=True); time.sleep(600)"]
print(child_processes.start(command, Path(sys.argv[1]), {}).pid, flush=True)
time.sleep(600)
"""


@pytest.fixture
def log(tmp_path):
    """Where a program's output goes."""
    return tmp_path / "log"


@pytest.fixture
def start(log):
    """Start programs, all of which are ended after the test."""
    started = []

    def begin(command, **environment):
        process = child_processes.start(command, log, environment)
        started.append(process)
        return process

    yield begin
    for process in started:
        child_processes.stop(process, patience=0)


def wrote(log, words: str) -> None:
    """Wait until a program has written something."""
    eventually(lambda: words in log.read_text(), f"{words!r} in the log")


def is_gone(pid: int) -> bool:
    """Whether a process has ended, reaped or not."""
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def test_a_program_gets_its_environment_and_its_output_goes_to_the_log(start, log):
    """Both outputs, after what stood there; and nothing of the lab's own environment."""
    log.write_text("before\n")
    code = "import os, sys; print('problem', file=sys.stderr); print(os.environ['MINE'], 'HOME' in os.environ)"
    process = start([sys.executable, "-c", code], MINE="yes")
    assert process.wait(20) == 0
    assert log.read_text() == "before\nproblem\nyes False\n"


def test_stopping_asks_first(start, log):
    """A program that ends when asked is not killed."""
    process = start(SLEEPER)
    wrote(log, "up")
    child_processes.stop(process, patience=20)
    assert process.returncode == -signal.SIGTERM


def test_stopping_ends_what_does_not_listen(start, log):
    """After the patience."""
    process = start(STUBBORN)
    wrote(log, "up")
    child_processes.stop(process, patience=0.2)
    assert process.returncode == -signal.SIGKILL


def test_stopping_ends_what_a_program_has_started(start, log):
    """Stopping a program ends its whole process group."""
    process = start([sys.executable, "-c", START_A_CHILD])
    eventually(lambda: log.read_text().endswith("\n"), "the child's id")
    grandchild = int(log.read_text())
    child_processes.stop(process, patience=20)
    eventually(lambda: is_gone(grandchild), "the grandchild ends")


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("raise SystemExit(3)", "ended with code 3"),
        ("print('first', flush=True); raise SystemExit('the last word  ')", "ended with code 1: the last word"),
        ("print('bye', flush=True); print(); import os; os.kill(os.getpid(), 9)", "was ended by SIGKILL: bye"),
        ("print('SECRET' * 100_000, end='')", "ended with code 0"),
        ("import os; os.write(1, b'caf\\xe9')", "ended with code 0: caf\N{REPLACEMENT CHARACTER}"),
    ],
)
def test_how_a_program_ended_is_told_with_its_last_words(code, says, start, log):
    """The code or the signal, and the last line that is not empty."""
    assert child_processes.how_it_ended(start([sys.executable, "-c", code]), log) == says


@pytest.mark.skipif(sys.platform != "linux", reason="parent-death signals are Linux'")
@pytest.mark.parametrize("listed", [True, False], ids=["the kernel's list", "psutil"])
def test_a_program_that_is_stopped_is_found_among_its_relatives(listed, start, log, monkeypatch):
    """By the kernel's list of children, or where there is none, by psutil."""
    if not listed:
        monkeypatch.setattr(child_processes, "_LISTS_CHILDREN", False)
    process = start([sys.executable, "-c", START_A_CHILD])
    wrote(log, "\n")
    child = int(log.read_text())
    assert child_processes.stopped(process.pid) == []
    for pid, expected in ((child, [child]), (process.pid, [process.pid, child])):
        os.kill(pid, signal.SIGSTOP)
        eventually(lambda expected=expected: child_processes.stopped(process.pid) == expected, "it is stopped")
    process.kill()
    process.wait()
    assert child_processes.stopped(process.pid) == []
    os.kill(child, signal.SIGKILL)


def test_no_program_outlives_a_lab_that_is_killed_outright(log):
    """The kernel ends it: nobody else is there to do so."""
    lab = subprocess.Popen([sys.executable, "-c", LAB, str(log)], stdout=subprocess.PIPE, text=True)
    with lab:
        child = int(lab.stdout.readline())
        wrote(log, "up")
        assert not is_gone(child)
        lab.kill()
        lab.wait(20)
        eventually(lambda: is_gone(child), "the program ends")


INTERRUPTED_IN_A_FORK = """
import os, signal, sys, time
from clientlab import child_processes
def handler(*_):
    raise KeyboardInterrupt
signal.signal(signal.SIGTERM, handler)
os.register_at_fork(after_in_parent=lambda: os.kill(os.getpid(), signal.SIGTERM))
try:
    child_processes.start([sys.executable, "-c", "import signal; print(signal.pthread_sigmask(0, ()))"], None, {})
    time.sleep(5)
    print("the signal was lost")
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="signals are held back on Linux only")
def test_a_signal_that_arrives_while_a_process_is_forked_is_not_lost():
    """Python ignores what its handler raises in a hook of fork(): the run would go on after Ctrl-C."""
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_IN_A_FORK], capture_output=True, text=True, timeout=30, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "interrupted" in done.stdout
    assert "lost" not in done.stdout
