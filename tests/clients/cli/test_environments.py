"""Environments as arms: the same strategies in several virtual environments, and environments that cannot be used."""

from __future__ import annotations

import re
import shutil
import sys
import venv
from importlib.metadata import distribution
from pathlib import Path

import psutil
import pytest

from clientlab import __version__
from clientlab.experiments.overrides import Overrides
from clientlab.judging.comparison import differences
from clientlab.reports import as_markdown
from clientlab.reports.as_html import render
from clientlab.results.capacity_search import Conditions
from clientlab.results.target import Target
from clientlab.running import environments
from clientlab.standalone.planning import plan_of
from clientlab.standalone.requests import NewRun
from clients.measured import is_alive
from running import eventually

CHECK, TRIAL = "clientlab.running.environment_check", "clientlab.measuring.trial_process"


def make(folder: Path) -> Path:
    """A virtual environment without any package, and its folder of packages."""
    venv.create(folder, symlinks=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    return packages


def add_urllib3(packages: Path, version: str) -> None:
    """Install this Python's urllib3 as another version, which notes the module of each process that imports it."""
    source = Path(str(distribution("urllib3").locate_file("urllib3")))
    shutil.copytree(source, packages / "urllib3", ignore=shutil.ignore_patterns("__pycache__"))
    (packages / "urllib3" / "_version.py").write_text(f"__version__ = version = {version!r}\n")
    with (packages / "urllib3" / "__init__.py").open("a") as file:
        noted = str(packages / "imported")
        file.write(f"\nimport sys\nwith open({noted!r}, 'a') as file: print(sys.orig_argv[3], file=file)\n")
    add_metadata(packages, "urllib3", version)


def add_metadata(packages: Path, name: str, version: str) -> None:
    """What an installer writes of a distribution."""
    info = packages / f"{name}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")


@pytest.fixture
def old_and_new(tmp_path):
    """Two environments that differ in the version of urllib3, which is all that they have."""
    for name, version in (("old", "1.98.0"), ("new", "1.99.0")):
        add_urllib3(make(tmp_path / "environments" / name), version)
    return [f"--env={name}={tmp_path / 'environments' / name}" for name in ("old", "new")]


def test_a_strategy_is_compared_in_two_environments(old_and_new, clientlab, server, results, tmp_path):
    """In one run, paired by round: its trials run there, without the lab's libraries, and versions are in the file."""
    words = ("run", "-v", "-t", "urllib3@threads", "-n", 30, "-c", 2, "--rounds", 3, "--url", server.url)
    said = clientlab(*words, *old_and_new)
    assert said.code == 0, said.err
    run = results.read("last")
    assert run.experiment.question == "Is `new` slower than `old`?"
    assert all("Is `new` slower than `old`?" in text for text in (said.err, said.out))
    names = ["urllib3@threads in old", "urllib3@threads in new"]
    assert [arm.name for arm in run.experiment.arms] == names
    assert [trial.environment for trial in run.trials if trial.arm == names[0]] == ["old"] * 3
    noted = (tmp_path / "environments").glob("*/lib/*/site-packages/imported")
    assert [path.read_text().split() for path in noted] == [[CHECK, *[TRIAL] * 3]] * 2
    assert "environment old: CPython" in said.out
    assert re.search(r"environment new: CPython [\d.]+, urllib3 1\.99\.0\n", said.out)
    held = run.surroundings.environments
    assert held["old"].packages == {"urllib3": "1.98.0"}
    assert run.surroundings.libraries == {}  # those of the lab's own Python were not measured
    sentence = (
        r"urllib3@threads in new takes \S+ \(\S+ to \S+\) times the time per request and \S+ \(\S+ to \S+\) times the "
    )
    for text in (" ".join(said.out.split()), as_markdown.render(run), page := render(run)):
        assert re.search(sentence + "CPU time per request of urllib3@threads in old.", text)
    assert "1.98.0" in page

    alone = clientlab(*words, old_and_new[0])
    assert alone.code == 0, alone.err
    other = results.read("last")
    assert other.experiment.question == "Which of these strategies is fastest here?"
    assert [arm.name for arm in other.experiment.arms] == ["urllib3@threads"]  # as in a run of another environment
    assert other.experiment.environments["old"].folder == str(tmp_path / "environments" / "old")
    assert "urllib3 in new" in {one.part for one in differences(other, run)}


@pytest.mark.parametrize(
    ("names", "question"),
    [
        (("old", "new"), "Does `new` hold fewer requests per second than `old`?"),
        (("a", "b", "c"), "How many requests per second does each of these strategies hold here?"),
    ],
)
def test_a_search_in_two_environments_asks_which_holds_less(names, question):
    """With more than two, no one is compared with one other."""
    overrides = Overrides(
        strategies=("urllib3@threads",), environments=dict.fromkeys(names, "/nowhere"),
        find_max={"conditions": Conditions.parse("p99<250ms")},
    )  # fmt: skip
    assert (
        plan_of(
            NewRun(command="clientlab run", target=Target(testbed="local"), overrides=overrides), None, print
        ).question
        == question
    )


def broken(folder: Path, kind: str) -> list[str]:
    """The options of environments that cannot be used."""
    packages = make(folder / "env")
    if kind == "other lab":
        add_metadata(packages, "clientlab", "0.0.9")
    if kind == "old Python":
        (folder / "env" / "bin" / "python").unlink()
        (folder / "env" / "bin" / "python").write_text("#!/bin/sh\necho '[[3, 8, 18], \"/usr\"]'\n")
        (folder / "env" / "bin" / "python").chmod(0o755)
    paths = {
        "no path": [folder / "none"], "no Python": [folder], "not a Python": [shutil.which("echo")],
        "same": [folder / "env", folder / "env" / "bin" / "python"],
    }  # fmt: skip
    names = ["one", "two"]
    return [f"--env={name}={path}" for name, path in zip(names, paths.get(kind, [folder / "env"]), strict=False)]


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        ("no path", "there is no .*/none; name the folder of a virtual environment, or a Python"),
        ("no Python", ".* has no bin/python; name the folder"),
        ("not a Python", ".*echo does not answer as a Python does"),
        ("old Python", r"its Python is 3\.8\.18; the lab needs 3\.11 or newer"),
        ("other lab", f"it has clientlab 0.0.9, and this is {re.escape(__version__)}; remove it there, or install"),
        ("no library", "arm 'urllib3': strategy 'urllib3' needs urllib3; install it there"),
        ("same", "it is the same as 'one': .*/env; leave one of them out"),
    ],
)
def test_an_environment_that_cannot_be_used_is_refused_in_a_line(kind, says, clientlab, server, tmp_path):
    """Exit code 2, before anything is measured: there is not even a run."""
    said = clientlab("run", "-t", "urllib3", "--url", server.url, *broken(tmp_path, kind))
    name = "two" if kind == "same" else "one"
    assert (said.code, said.out) == (2, "")
    assert re.fullmatch(f"clientlab: environment '{name}': {says}.*\n", said.err)
    assert not (tmp_path / "results").exists()
    assert len([seen for seen in server.seen if seen.target == "/"]) <= 1  # the probe of --url


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("-t", "urllib3", "--env", "old"), r"'old' is not NAME=PATH"),
        (("-t", "urllib3", "--env", "a b=x"), r"'a b=x' is not NAME=PATH"),
        (("-t", "urllib3", "--env", "a=x", "--env", "a=y"), "'a' is given twice; name each environment once"),
        (
            ("keepalive", "--env", "a=x", "--env", "b=y"),
            "--env with experiment 'keepalive': its claims and its baseline",
        ),
    ],
)
def test_an_option_of_an_environment_that_has_no_meaning_is_refused(words, says, clientlab):
    """An invalid option of an environment is refused in one line."""
    said = clientlab("run", *words)
    assert said.code == 2
    assert re.fullmatch(f"clientlab: .*{says}.*\n", said.err)


FIRST_LOOK = '[[3, 13, 1], "/nowhere"]'
DEEP = f"{'[' * 100_000}{']' * 100_000}"


@pytest.mark.parametrize(
    "answers",
    [["5"], ["{}"], [DEEP], [FIRST_LOOK, "5"], [FIRST_LOOK, "{}"]],
    ids=lambda answers: " then ".join(answer[:12] for answer in answers),
)
def test_a_program_that_answers_otherwise_than_a_python_is_refused_in_a_line(answers, clientlab, server, tmp_path):
    """To the first look, and to the second."""
    for number, answer in enumerate(answers):
        (tmp_path / f"answer-{number}").write_text(answer)
    program = tmp_path / "program"
    program.write_text(f'#!/bin/sh\ncd {tmp_path}\nset -- answer-*\ncat "$1"\n[ $# = 1 ] || rm "$1"\n')
    program.chmod(0o755)
    said = clientlab("run", "-t", "http.client", "--url", server.url, f"--env=e={program}")
    assert (said.code, said.err.count("\n")) == (2, 1), said.err
    assert "environment 'e': " in said.err
    assert said.err.endswith("/program does not answer as a Python does\n")


def test_a_program_that_hangs_is_ended_with_its_children(clientlab, server, tmp_path, monkeypatch):
    """They would otherwise outlive the lab."""
    monkeypatch.setattr(environments, "_PATIENCE", 0.5)
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\nsleep 600 &\necho $! > {tmp_path}/child\nwait\n")
    program.chmod(0o755)
    said = clientlab("run", "-t", "http.client", "--url", server.url, f"--env=e={program}")
    assert (said.code, said.err.count("\n")) == (2, 1)
    assert "program does not run: no answer within 0.5 s" in said.err
    child = int((tmp_path / "child").read_text())
    eventually(lambda: not psutil.pid_exists(child) or not is_alive(psutil.Process(child)), "the child has ended")


def test_the_lab_leaves_nothing_in_an_environment_and_takes_nothing_from_it(clientlab, server, tmp_path, monkeypatch):
    """PYTHONPATH of the user does not reach it: there, it would hide the environment's own libraries."""
    (tmp_path / "shadow").mkdir()
    (tmp_path / "shadow" / "urllib3.py").write_text("raise RuntimeError\n")
    packages = make(tmp_path / "env")
    add_urllib3(packages, "1.98.0")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "shadow"))
    before = sorted(packages.iterdir())
    said = clientlab("run", "-t", "urllib3", "-n", 3, "--rounds", 1, "--url", server.url, f"--env=it={sys.prefix}",
                     f"--env=bare={tmp_path / 'env'}")  # fmt: skip
    assert said.code == 0, said.err
    assert [path for path in packages.iterdir() if path not in before] == [packages / "imported"]  # by its urllib3


def test_packages_of_the_current_folder_are_in_no_environment(old_and_new, clientlab, server, results, tmp_path):
    """In a clone of a library, both environments would measure the clone."""
    (tmp_path / "urllib3").mkdir()
    (tmp_path / "urllib3" / "__init__.py").write_text("raise ImportError('the clone')\n")
    said = clientlab("run", "-t", "urllib3", "-n", 3, "--rounds", 1, "--url", server.url, *old_and_new)
    assert said.code == 0, said.err
    assert {trial.status for trial in results.read("last").trials} == {"done"}
