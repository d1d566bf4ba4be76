"""Code is loaded only if the command line names it, itself or by an experiment's file.

The code here leaves a mark.
"""

from __future__ import annotations

import socket
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from clientlab import strategies
from clientlab.conformance.server import counting_server
from clientlab.experiments.file import read_experiment
from clientlab.results.document import Run
from clientlab.results.plan import EnvironmentSpec, Target
from clientlab.results.store import Store
from clients.documents import a_run, a_trial

CODE = """
    from pathlib import Path
    Path({mark!r}).touch()
    from clientlab.clients.http_client import HttpClient as X
"""
NAMES = ("mine.py:X", "mine.py:X@threads", "requests-session@mine.py:X", "of-package")
"""Names of strategies, as documents have them."""


@pytest.fixture
def marks(tmp_path, monkeypatch):
    """A function that returns the marks that code has left.

    The current folder holds a file and a package with code.
    """
    monkeypatch.chdir(tmp_path)
    for name in ("mine", "a_package"):
        Path(f"{name}.py").write_text(
            dedent(CODE).format(mark=str(tmp_path / f"{name}.mark"))
        )
    info = Path("a_package-1.dist-info")
    info.mkdir()
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: a-package\nVersion: 1\n"
    )
    (info / "entry_points.txt").write_text(
        "[clientlab.strategies]\nof-package = a_package:X\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(strategies, "ADMITTED", {})
    yield lambda: sorted(path.stem for path in tmp_path.glob("*.mark"))
    sys.modules.pop("a_package", None)


def keep(run: Run, url: str = "http://127.0.0.1:9/") -> None:
    """Store an unfinished run against the user's own server."""
    store = Store(Path("results"))
    store.claim(run.run)
    target = Target(testbed="external", url=url)
    store.save(run.updated(status="incomplete", target=target))


@pytest.mark.parametrize("name", NAMES)
def test_a_run_is_read_without_its_code_and_resumed_only_if_that_is_named(
    name, marks, clientlab
):
    keep(a_run(a_trial(name, upstream="127.0.0.1:9"), name="a", rounds=2))
    files = (
        "--html",
        "a.html",
        "--markdown",
        "a.md",
        "--csv",
        "a.csv",
        "--junit",
        "a.xml",
    )
    assert clientlab("report", "a", *files).code == 0
    assert clientlab("compare", "a", "a").code == 0
    assert name.partition(":")[0] in clientlab("report", "a").out
    assert clientlab("runs").code == 0
    said = clientlab("run", "--resume", "a")
    assert said.code == 2
    assert said.err.count("\n") == 1
    assert "add -t" in said.err
    assert clientlab("run", "--resume", "a", "-t", "urllib3").code == 2
    assert marks() == []


def test_a_resumed_run_needs_its_environment_on_the_command_line(marks, clientlab):
    run = a_run(a_trial("urllib3", upstream="127.0.0.1:9"), name="a", rounds=2)
    arms = [arm.updated(environment="e") for arm in run.experiment.arms]
    environments = {"e": EnvironmentSpec(folder="/an/environment")}
    plan = run.experiment.updated(environments=environments, arms=arms)
    keep(run.updated(experiment=plan, trials=[]))
    assert "add --env e=/an/environment" in clientlab("run", "--resume", "a").err
    for words in (
        ("--env", "e=/another"),
        ("--env", "e=/an/environment", "--env", "f=/another"),
    ):
        said = clientlab("run", "--resume", "a", *words)
        assert said.code == 2
        assert said.err.startswith("clientlab: --env ")
    assert marks() == []


def test_a_resumed_run_needs_the_requirement_of_its_environment_again(
    marks, clientlab, monkeypatch
):
    monkeypatch.setattr(socket.socket, "connect_ex", lambda *_: 1)
    run = a_run(a_trial("urllib3", upstream="127.0.0.1:9"), name="a", rounds=2)
    arms = [arm.updated(environment="e") for arm in run.experiment.arms]
    spec = EnvironmentSpec(requirements=["no-such-library-of-the-lab==9"])
    plan = run.experiment.updated(environments={"e": spec}, arms=arms)
    keep(run.updated(experiment=plan, trials=[]))
    said = clientlab("run", "--resume", "a", "--env", "e=no-such-library-of-the-lab==8")
    assert said.code == 2
    assert said.err.startswith("clientlab: --env ")
    assert "is no-such-library-of-the-lab==9" in said.err
    said = clientlab("run", "--resume", "a", "--env", f"e={spec.requirements[0]}")
    assert said.code == 2
    assert "nothing listens" in said.err
    assert "--env" not in said.err
    assert marks() == []


@pytest.mark.real
def test_an_experiments_file_may_name_code_and_its_run_is_resumed_with_it(
    marks, clientlab
):
    """Running a file means consent to the code that it names."""
    table = (
        'question = "?"\nstrategies = ["mine.py:X"]\nrounds ='
        " 1\n[workloads.small]\nrequests = 2\n"
    )
    Path("mine.toml").write_text(table)
    with counting_server() as server:
        said = clientlab("run", "mine.toml", "--url", server.url, "--name", "a")
        assert (said.code, marks()) == (0, ["mine"]), said.err
        store = Store(Path("results"))
        run = store.read("a")
        store.save(run.updated(status="incomplete", trials=[]))
        said = clientlab("run", "--resume", "a", "-t", "mine.py:X")
    assert said.code == 0, said.err


def test_an_experiments_file_names_code_relative_to_its_own_folder(tmp_path):
    path = tmp_path / "mine.toml"
    (tmp_path / "sub").mkdir()
    for name in ("mine.py", "sub/mine.py"):
        (tmp_path / name).touch()
    path.write_text(
        'question = "?"\nstrategies = ["mine.py:X", "urllib3"]\n[workloads.small]\n'
        '[arms.a]\nstrategy = "requests-session@sub/mine.py:Runs?size=2"\n'
    )
    found = read_experiment(path)
    assert found.strategies == [f"{tmp_path}/mine.py:X", "urllib3"]
    assert (
        found.arms["a"].strategy
        == f"requests-session@{tmp_path}/sub/mine.py:Runs?size=2"
    )
