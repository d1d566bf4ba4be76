"""Environments as arms: the same strategies in several virtual environments, and environments that cannot be used."""

from __future__ import annotations

import shutil
import venv
from importlib.metadata import distribution
from pathlib import Path

import pytest

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
    info = packages / f"urllib3-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: urllib3\nVersion: {version}\n")


@pytest.fixture
def old_and_new(tmp_path):
    """Two environments that differ in the version of urllib3, which is all that they have."""
    for name, version in (("old", "1.98.0"), ("new", "1.99.0")):
        add_urllib3(make(tmp_path / "environments" / name), version)
    return [f"--env={name}={tmp_path / 'environments' / name}" for name in ("old", "new")]


@pytest.mark.real
def test_a_strategy_is_compared_in_two_environments(old_and_new, clientlab, server, results, tmp_path, monkeypatch):
    """In one run, paired by round. Trials run there, with none of the lab's libraries, and versions are in the file.

    What the user has on PYTHONPATH or in the current folder, as in a clone of a library, is in no environment.
    """
    for folder in ("urllib3", "shadow/urllib3"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "__init__.py").write_text("raise ImportError('the clone')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "shadow"))
    words = ("run", "-v", "-t", "urllib3@threads", "-n", 5, "-c", 2, "--rounds", 1, "--url", server.url)
    said = clientlab(*words, *old_and_new)
    assert said.code == 0, said.err
    run = results.read("last")
    names = ["urllib3@threads in old", "urllib3@threads in new"]
    assert [arm.name for arm in run.experiment.arms] == names
    assert {trial.arm: (trial.environment, trial.status) for trial in run.trials} == {
        names[0]: ("old", "done"), names[1]: ("new", "done"),
    }  # fmt: skip
    packages = [path.parent for path in (tmp_path / "environments").glob("*/lib/*/site-packages/imported")]
    assert [(path / "imported").read_text().split() for path in packages] == [[CHECK, TRIAL]] * 2
    assert not any(path.name.startswith("clientlab") for folder in packages for path in folder.iterdir())
    held = run.surroundings.environments
    assert {name: one.packages for name, one in held.items()} == {
        "old": {"urllib3": "1.98.0"}, "new": {"urllib3": "1.99.0"},
    }  # fmt: skip
    assert run.surroundings.libraries == {}  # those of the lab's own Python were not measured
    assert "urllib3 1.99.0" in said.out


def broken(folder: Path, kind: str) -> list[str]:
    make(folder / "env")
    if kind == "old Python":
        python = folder / "env" / "bin" / "python"
        python.unlink()
        python.write_text("#!/bin/sh\necho '[3, 8, 18]'\n")
        python.chmod(0o755)
    return [f"--env=one={folder / ('none' if kind == 'no path' else 'env')}"]


@pytest.mark.real
@pytest.mark.parametrize(
    ("kind", "name"), [("no path", "none"), ("old Python", "3.8.18"), ("no library", "strategy 'urllib3'")]
)
def test_an_environment_that_cannot_be_used_is_refused_in_a_line(kind, name, clientlab, server, tmp_path):
    said = clientlab("run", "-t", "urllib3", "--url", server.url, *broken(tmp_path, kind))
    assert (said.code, said.out, said.err.count("\n")) == (2, "", 1)
    assert said.err.startswith("clientlab: environment 'one': ")
    assert name in said.err
    assert not (tmp_path / "results").exists()
    assert len([seen for seen in server.seen if seen.target == "/"]) <= 1  # the probe of --url
