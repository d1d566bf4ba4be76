"""The current folder is not imported by any process that the lab starts: it may be the clone of a library."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

import clientlab
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
    """A folder with code of the names of libraries, a client of the user's own, and its neighbours."""
    (tmp_path / "mine.py").write_text(dedent(MINE))
    (tmp_path / "neighbour.py").write_text("here = True\n")
    (tmp_path / "later.py").write_text("here = True\n")
    return tmp_path


def run(folder: Path, *words: str) -> None:
    command = [PROGRAM, "run", *words, "-n", "4", "--rounds", "1"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=90, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.real
def test_a_run_imports_nothing_of_the_current_folder(folder):
    """Trial processes, pools and servers; a user's client imports its neighbours."""
    marks = make(folder)
    run(folder, "-t", "mine.py:Mine", "-t", "requests@processes?start_method=spawn", "-c", "2")
    assert left(marks) == {}
    trials = Store(folder / "results").read("last").trials
    assert {(trial.status, sum(trial.errors.values())) for trial in trials} == {("done", 0)}


def test_every_start_of_a_python_is_isolated():
    """Each mention of the lab's own interpreter in the lab's code is known, and none starts a module without `-P`."""
    root = Path(clientlab.__file__).parent
    found = {
        str(path.relative_to(root))
        for path in root.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and node.attr == "executable" and ast.unparse(node.value) == "sys"
    }
    assert found == {
        "measuring/trial_handle.py",  # adds -P
        "running/environments.py",  # names the Python that uv is to take, and uv's own place
    }
