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
    command = [PROGRAM, "run", *words, "-n", "4", "--rounds", "1", "--warmup", "0"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=90, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("-t", "aiohttp", "-t", "requests@processes?start_method=spawn", "--upstream=flask", "--upstream=aiohttp"),
        ("-t", "mine.py:Mine", "-t", "mine.py:Mine@processes?start_method=forkserver", "--rtt=1ms"),
        ("-t", "urllib3", "--upstream=flask?server=development", "--upstream=aiohttp?server=development"),
        ("-t", "http.client", f"--env=it={sys.prefix}"),
    ],
    ids=["servers and pools", "a client of one's own", "development servers", "an environment"],
)
def test_a_run_imports_nothing_of_the_current_folder(words, folder):
    """Trial processes, pools, servers, links and looks into environments; a user's client imports its neighbours."""
    marks = make(folder)
    run(folder, *words)
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
        "child_processes.py",  # adds -P
        "cli/serving.py",  # the program of a command that child_processes.py makes
        "measuring/profiler.py",  # looks for py-spy beside it
        "measuring/trial_handle.py",  # adds -P
        "running/environments.py",  # names the Python that uv is to take, and uv's own place
    }


def test_a_user_resumes_the_run_of_his_own_file(folder):
    """With `--allow`; without it, one line names the file and the option, and nothing is measured."""
    run(folder, "-t", "mine.py:Mine", "-t", "http.client")
    store = Store(folder / "results")
    whole = store.read("last")
    store.save(whole.model_copy(update={"status": "incomplete", "trials": []}))
    resume = [PROGRAM, "run", "--resume", "last"]
    refused = subprocess.run(resume, cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    assert "add --allow mine.py" in refused.stderr
    assert store.read("last").trials == []
    allowed = [*resume, "--allow", "mine.py"]
    subprocess.run(allowed, cwd=folder, capture_output=True, timeout=60, check=True)
    assert {(trial.strategy, trial.status) for trial in store.read("last").trials} == {
        ("mine.py:Mine", "done"),
        ("http.client", "done"),
    }
