"""No process of the lab imports modules from the current folder, which may be the clone of a library."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from clientlab.results.store import Store
from clients.current_folder import left, make

PROGRAM = Path(sys.executable).with_name("clientlab")
MINE = """
    import neighbour
    from clientlab.clients.http_client import HttpClient

    class Mine(HttpClient):
        "Imports a neighbour, at once and later."
        def send(self, request):
            import later
            return super().send(request)
"""


@pytest.fixture
def folder(tmp_path):
    """A folder with a user's client and the modules that it imports."""
    (tmp_path / "mine.py").write_text(dedent(MINE))
    (tmp_path / "neighbour.py").write_text("here = True\n")
    (tmp_path / "later.py").write_text("here = True\n")
    return tmp_path


@pytest.mark.real
def test_a_run_imports_only_a_users_client_from_the_current_folder(folder):
    """The folder also contains modules with the names of libraries."""
    marks = make(folder)
    words = "run -t mine.py:Mine -t requests@processes?start_method=spawn -c 2 -n 4 --rounds 1"
    command = [PROGRAM, *words.split()]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=90, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert left(marks) == {}
    trials = Store(folder / "results").read("last").trials
    assert {(trial.status, trial.figures.failed) for trial in trials} == {("done", 0)}
