"""Documents and requests that name code: none of it runs. Only the command line of the person who starts a process can.

The code leaves a mark when it runs: a file beside it, an entry point of an installed package, the Python of an
environment.
"""

from __future__ import annotations

import signal
import socket
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from clientlab import __version__
from clientlab.cli import run_command_line
from clientlab.errors import LabError
from clientlab.results.document import Run
from clientlab.results.plan import EnvironmentSpec
from clientlab.results.store import Store
from clientlab.service.run_manager import MARK
from clientlab.strategies import find, known, plugins
from clientlab.workload.workload import Workload
from clients.documents import a_run, a_trial

CODE = """
    from pathlib import Path
    (Path({folder!r}) / "marks" / {name!r}).touch()

    class X:
        def __init__(self, *given): ...
        def open(self): ...
        def send(self, request): ...
        def close(self): ...
"""
NAMES = (
    "{folder}/evil.py:X",
    "{folder}/evil.py:X@threads",
    "evil.py:X",
    "requests-session@{folder}/evil.py:X",
    "aiohttp@evil.py:X",
    "evil-client",
    "urllib3@evil-client",
    "evil_package:X",
    "evil_module:X",
)
"""Names of strategies, as documents have them."""

EXPERIMENTS = (
    'question = "?"\nstrategies = [{name!r}]\n[workloads.small]\nrequests = 2\n',
    'question = "?"\n[arms.a]\nstrategy = {name!r}\n[workloads.small]\nrequests = 2\n',
    'question = "?"\nstrategies = ["urllib3"]\ninstead = {{urllib3 = {name!r}}}\n[workloads.small]\nrequests = 2\n',
    'question = "?"\nstrategies = ["urllib3"]\ninstead = {{{name!r} = "urllib3"}}\n[workloads.small]\nrequests = 2\n',
)
ENVIRONMENTS = (
    'folder = "{folder}/environment"',
    'folder = "{folder}/environment/bin/python"',
    'python = "{folder}/environment/bin/python"',
    'requirements = ["{folder}/project"]',
    'requirements = ["evil @ file://{folder}/project"]',
)


@pytest.fixture
def marks(tmp_path, monkeypatch):
    """The folder of the marks. The current folder holds code that leaves one."""
    (tmp_path / "marks").mkdir()
    (tmp_path / "sub").mkdir()
    for name in ("evil", "evil_module", "evil_package"):
        (tmp_path / f"{name}.py").write_text(dedent(CODE).format(folder=str(tmp_path), name=name))
    info = tmp_path / "evil_package-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: evil-package\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[clientlab.strategies]\nevil-client = evil_package:X\n")
    program = tmp_path / "environment" / "bin" / "python"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\n: > '{tmp_path}/marks/environment'\nexec '{sys.executable}' \"$@\"\n")
    program.chmod(0o755)
    project = tmp_path / "project"
    project.mkdir()
    (project / "setup.py").write_text(dedent(CODE).format(folder=str(tmp_path), name="project"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(known.ADMITTED, "packages", None)
    yield tmp_path / "marks"
    for name in ("evil_package", "evil_module"):
        sys.modules.pop(name, None)


@pytest.fixture
def clientlab():
    """Call the command line, which handles signals meanwhile."""
    ending = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
    before = [signal.getsignal(number) for number in ending]
    yield lambda *words: run_command_line([str(word) for word in words])
    for number, handler in zip(ending, before, strict=True):
        signal.signal(number, handler)


def names_in(folder: Path) -> list[str]:
    return [name.format(folder=folder) for name in NAMES]


def left(marks: Path) -> list[str]:
    return sorted(path.name for path in marks.iterdir())


def run_naming(name: str, order: int, status: str) -> Run:
    """A run file as somebody sends it: each reader comes to the name of its strategy, and judges its connections."""
    run = a_run(a_trial(name, connections_opened=3), a_trial("urllib3"), name=f"20240506-0708{order:02d}-demo-abcd",
                workloads={"workload": Workload(requests=1000, connections="warm")}, rounds=3)  # fmt: skip
    limits = run.surroundings.model_copy(update={"libraries": {f"{name.partition(':')[0]}": "1"}})
    return run.model_copy(update={"status": status, "surroundings": limits, "clientlab": __version__})


def keep_all(store: Store, folder: Path) -> list[str]:
    """Store a finished and an unfinished run of each name; the names of the runs."""
    kept = []
    for status in ("done", "running"):
        for name in names_in(folder):
            run = run_naming(name, len(kept), status)
            (store.claim(run.run) / MARK).write_text("demo")
            store.save(run)
            kept.append(run.run)
    return kept


@pytest.mark.parametrize(
    ("name", "mark"), [("evil.py:X", "evil"), ("evil.py", "evil"), ("evil-client", "evil_package")]
)
def test_a_name_of_the_command_line_runs_its_code(name, mark, marks):
    """So the marks of the other tests would be left: this is the control."""
    plugins.admit([name])
    assert left(marks) == [mark]
    if name != "evil.py":
        assert find(name).executor == "serial"


def test_no_reader_of_run_files_runs_what_they_name(marks, clientlab, tmp_path, capsys):
    """Every subcommand that reads runs: finished ones, and those that are judged as they are read."""
    store = Store(tmp_path / "results")
    runs = keep_all(store, tmp_path)
    assert len(runs) >= 16
    assert clientlab("runs") == 0
    assert clientlab("runs", "--json") == 0
    for name in runs:
        files = ["--html", "page.html", "--markdown", "page.md", "--csv", "page.csv", "--junit", "page.xml"]
        assert clientlab("report", name, *files, "--fail-on", "p99 > 60m") == 0, capsys.readouterr().err
        assert clientlab("claims", name) in {0, 2}
        assert clientlab("compare", runs[0], name) in {0, 1, 2}
    assert left(marks) == []


def test_a_resumed_run_runs_no_code_that_the_command_line_does_not_name(marks, clientlab, tmp_path, capsys):
    """Exit code 2, with `--yes`, too: it permits load, and no code."""
    store = Store(tmp_path / "results")
    runs = keep_all(store, tmp_path)
    for name in runs[len(runs) // 2 :]:
        assert clientlab("run", "--resume", name, "--yes") == 2
    environments = {"e": EnvironmentSpec(folder=str(tmp_path / "environment"))}
    run = store.read(runs[-1])
    arms = [arm.model_copy(update={"strategy": "urllib3", "environment": "e"}) for arm in run.experiment.arms]
    plan = run.experiment.model_copy(update={"environments": environments, "arms": arms})
    store.save(run.model_copy(update={"experiment": plan, "trials": []}))
    assert clientlab("run", "--resume", run.run, "--yes") == 2
    assert f"{tmp_path}/environment" in capsys.readouterr().err
    assert left(marks) == []


@pytest.mark.real
@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_an_experiment_runs_no_strategy_that_the_command_line_does_not_name(
    experiment, marks, clientlab, tmp_path, capsys
):
    """Exit code 2, and nothing is begun."""
    for name in names_in(tmp_path):
        Path("other.toml").write_text(experiment.format(name=name))
        words = ("--rounds", 1, "--url", "http://127.0.0.1:9/")
        assert clientlab("run", "other.toml", *words) == 2
        capsys.readouterr()
    assert left(marks) == []


@pytest.mark.real
@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_an_experiment_runs_no_environment_that_the_command_line_does_not_name(
    environment, marks, clientlab, tmp_path, capsys
):
    """Neither its Python nor the code that is installed into it. The line has the option that permits it."""
    text = 'question = "?"\nstrategies = ["urllib3"]\n[workloads.small]\nrequests = 2\n[environments.e]\n'
    Path("other.toml").write_text(text + environment.format(folder=tmp_path))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        assert clientlab("run", "other.toml", "--url", url, "--timeout", "1s", "--yes") == 2
    assert "--allow-env" in capsys.readouterr().err
    assert left(marks) == []


def test_what_the_command_line_names_is_found_in_documents(marks, tmp_path):
    """A user resumes the run of his own file with `--allow`, and its other classes are found as well."""
    plugins.admit([str(tmp_path / "evil.py")])
    assert find("evil.py:X").client == f"{tmp_path}/evil.py:X"
    with pytest.raises(LabError, match="evil_module"):
        find("evil_module.py:X")
    assert left(marks) == ["evil"]
