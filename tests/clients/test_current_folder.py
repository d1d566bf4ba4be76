"""No process of the lab imports modules from the current folder, which may be the clone
of a library.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from clientlab.results.store import Store

PROGRAM = Path(sys.executable).with_name("clientlab")
SHADOWS = (
    "aiohttp",
    "clientlab",
    "ephem",
    "flask",
    "gunicorn",
    "mockupstream",
    "multidict",
    "numpy",
    "psutil",
    "requests",
    "urllib3",
    "uvloop",
    "werkzeug",
    "yarl",
    "argparse",
    "asyncio",
    "http",
    "importlib",
    "json",
    "logging",
    "multiprocessing",
    "pickle",
    "random",
    "uuid",
)
"""Names of packages of what is measured, of what serves, and of the lab; and of
Python's own modules.
"""

MINE = """
    import neighbour
    from clientlab.clients.http_client import HttpClient

    class Mine(HttpClient):
        "Imports a neighbour, at once and later."
        def send(self, request):
            import later
            return super().send(request)
"""


@pytest.mark.real
def test_a_run_imports_only_a_users_client_from_the_current_folder(tmp_path):
    """The folder has a client with the modules that it imports, and others, which leave
    a mark when they are.
    """
    (tmp_path / "mine.py").write_text(dedent(MINE))
    for name in ("neighbour", "later"):
        (tmp_path / f"{name}.py").touch()
    marks = tmp_path / "marks"
    marks.mkdir()
    for name in SHADOWS:
        (tmp_path / name).mkdir()
        mark = (
            f"import sys\nopen({str(marks / name)!r}, 'w').write('"
            " '.join(sys.orig_argv))\n"
        )
        (tmp_path / name / "__init__.py").write_text(mark)
    words = (
        "run -t mine.py:Mine -t requests@processes?start_method=spawn -c 2 -n 4"
        " --rounds 1"
    )
    command = [PROGRAM, *words.split()]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, timeout=90, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert {path.name: path.read_text() for path in marks.iterdir()} == {}
    trials = Store(tmp_path / "results").read("last").trials
    assert {(trial.status, trial.figures.failed) for trial in trials} == {("done", 0)}
