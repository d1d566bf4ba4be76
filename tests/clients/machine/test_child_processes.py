"""Processes that the lab starts."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys

import psutil
import pytest

from clientlab.machine import child_processes
from clients.measured import is_alive
from running import eventually

pytestmark = pytest.mark.real

SLEEP = "import time; print('up', flush=True); time.sleep(600)"
SLEEPER = [sys.executable, "-c", SLEEP]
STUBBORN = [
    sys.executable,
    "-c",
    f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {SLEEP}",
]
START_A_CHILD = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(child.pid, flush=True)
time.sleep(600)
"""


@pytest.fixture
def log(tmp_path):
    """The file for a program's output."""
    return tmp_path / "log"


@pytest.fixture
def start(log):
    """Start a program that is killed after the test."""
    with contextlib.ExitStack() as stack:

        def begin(command, **environment):
            process = child_processes.start(command, log, environment)
            stack.callback(child_processes.stop, process, patience=0)
            return process

        yield begin


def test_a_program_gets_only_its_environment_and_appends_its_output_to_the_log(
    start, log
):
    log.write_text("before\n")
    code = (
        "import os, sys; print('problem', file=sys.stderr); print(os.environ['MINE'],"
        " 'HOME' in os.environ)"
    )
    process = start([sys.executable, "-c", code], MINE="yes")
    assert process.wait(20) == 0
    assert log.read_text() == "before\nproblem\nyes False\n"


@pytest.mark.parametrize(
    ("command", "patience", "number"),
    [(SLEEPER, 20, signal.SIGTERM), (STUBBORN, 0.2, signal.SIGKILL)],
)
def test_stopping_terminates_a_program_and_then_kills_it(
    command, patience, number, start, log
):
    process = start(command)
    eventually(lambda: "up" in log.read_text(), "it runs")
    child_processes.stop(process, patience)
    assert process.returncode == -number


def test_stopping_also_ends_the_children_of_a_program(start, log):
    process = start([sys.executable, "-c", START_A_CHILD])
    eventually(lambda: log.read_text().endswith("\n"), "the child's id")
    grandchild = psutil.Process(int(log.read_text()))
    child_processes.stop(process, patience=20)
    eventually(lambda: not is_alive(grandchild), "the grandchild ends")


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("raise SystemExit(3)", "ended with code 3"),
        (
            "print('first', flush=True); raise SystemExit('the last word  ')",
            "ended with code 1: the last word",
        ),
        (
            "print('bye', flush=True); print(); import os; os.kill(os.getpid(), 9)",
            "was ended by SIGKILL: bye",
        ),
    ],
)
def test_an_end_is_described_with_the_last_line_of_the_log(code, says, start, log):
    assert (
        child_processes.describe_end(start([sys.executable, "-c", code]), log) == says
    )


INTERRUPTED_IN_A_FORK = """
import os, signal, sys, time
from clientlab.machine import child_processes
def handler(*_):
    raise KeyboardInterrupt
signal.signal(signal.SIGTERM, handler)
os.register_at_fork(after_in_parent=lambda: os.kill(os.getpid(), signal.SIGTERM))
try:
    code = "import signal; print(signal.pthread_sigmask(0, ()))"
    child_processes.start([sys.executable, "-c", code], None, {})
    time.sleep(5)
    print("the signal was lost")
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.skipif(
    sys.platform != "linux", reason="signals are held back on Linux only"
)
def test_a_signal_that_arrives_while_a_process_is_forked_is_not_lost():
    """Python ignores exceptions in a hook of fork(), so the run would continue after
    Ctrl-C.
    """
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_IN_A_FORK],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 0
    assert done.stderr == ""
    assert "interrupted" in done.stdout
    assert "lost" not in done.stdout
