"""Environments: strategies in several of them, those that uv builds, and those that
cannot be used.
"""

from __future__ import annotations

import shutil
import sys
import venv
from importlib.metadata import distribution
from pathlib import Path

import pytest

pytestmark = pytest.mark.real

CHECK = "clientlab.running.environment_check"
TRIAL = "clientlab.trial.process"


def make(folder: Path) -> Path:
    """Make a virtual environment without packages, and return its folder of
    packages.
    """
    venv.create(folder, symlinks=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    return packages


def add_urllib3(packages: Path, version: str) -> None:
    """Install this Python's urllib3 as another version that records the module of each
    process that imports it.
    """
    source = Path(str(distribution("urllib3").locate_file("urllib3")))
    shutil.copytree(
        source, packages / "urllib3", ignore=shutil.ignore_patterns("__pycache__")
    )
    (packages / "urllib3" / "_version.py").write_text(
        f"__version__ = version = {version!r}\n"
    )
    with (packages / "urllib3" / "__init__.py").open("a") as file:
        noted = str(packages / "imported")
        file.write(
            f"\nimport sys\nwith open({noted!r}, 'a') as file: print(sys.orig_argv[3],"
            " file=file)\n"
        )
    info = packages / f"urllib3-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: urllib3\nVersion: {version}\n"
    )


def test_a_strategy_is_compared_in_two_environments(
    clientlab, server, results, tmp_path, monkeypatch
):
    """The trials run without the lab's libraries, and the versions are in the run file.

    Environments contain nothing from PYTHONPATH or the current folder, which may be a
    clone of a library.
    """
    for name, version in (("old", "1.98.0"), ("new", "1.99.0")):
        add_urllib3(make(tmp_path / "environments" / name), version)
    for folder in ("urllib3", "shadow/urllib3"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "__init__.py").write_text(
            "raise ImportError('the clone')\n"
        )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "shadow"))
    words = (
        "run",
        "-v",
        "-t",
        "urllib3@threads",
        "-n",
        5,
        "-c",
        2,
        "--rounds",
        1,
        "--url",
        server.url,
    )
    said = clientlab(
        *words,
        *(
            f"--env={name}={tmp_path / 'environments' / name}"
            for name in ("old", "new")
        ),
    )
    assert said.code == 0, said.err
    run = results.read("last")
    names = ["urllib3@threads in old", "urllib3@threads in new"]
    assert [arm.name for arm in run.experiment.arms] == names
    assert {
        trial.planned.arm: (trial.planned.environment, trial.status)
        for trial in run.trials
    } == {
        names[0]: ("old", "done"),
        names[1]: ("new", "done"),
    }
    packages = [
        path.parent
        for path in (tmp_path / "environments").glob("*/lib/*/site-packages/imported")
    ]
    assert [(path / "imported").read_text().split() for path in packages] == [
        [CHECK, TRIAL]
    ] * 2
    assert not any(
        path.name.startswith("clientlab")
        for folder in packages
        for path in folder.iterdir()
    )
    held = run.surroundings.environments
    assert {name: one.packages for name, one in held.items()} == {
        "old": {"urllib3": "1.98.0"},
        "new": {"urllib3": "1.99.0"},
    }
    assert (
        run.surroundings.libraries == {}
    )  # those of the lab's own Python were not measured
    assert "urllib3 1.99.0" in said.out


@pytest.mark.parametrize(
    ("folder", "name"),
    [("none", "none"), ("old", "3.8.18"), ("env", "strategy 'urllib3'")],
)
def test_an_environment_that_cannot_be_used_is_refused_in_one_line(
    folder, name, clientlab, server, tmp_path
):
    make(tmp_path / "env")
    python = make(tmp_path / "old").parents[2] / "bin" / "python"
    python.unlink()
    python.write_text("#!/bin/sh\necho '[3, 8, 18]'\n")
    python.chmod(0o755)
    said = clientlab(
        "run", "-t", "urllib3", "--url", server.url, f"--env=one={tmp_path / folder}"
    )
    assert said.code == 2
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert said.err.startswith("clientlab: environment 'one': ")
    assert name in said.err
    assert not (tmp_path / "results").exists()


EXPERIMENT = """
question = "Which?"
[workloads.w]
requests = 3
[arms.pinned]
strategy = "http.client@threads"
environment = "old"
[environments.old]
{}
"""


def test_an_environment_that_cannot_be_built_is_refused_in_a_line(
    clientlab, server, monkeypatch, tmp_path
):
    """Exit code 2, and the next run does not use what is left of it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("UV_OFFLINE", "1")
    Path("mine.toml").write_text(
        EXPERIMENT.format('requirements = ["no-such-library-of-the-lab==9"]')
    )
    for _ in range(2):
        said = clientlab("run", "mine.toml", "--url", server.url)
        assert said.code == 2
        assert said.out == ""
        assert said.err.count("\n") == 1
        assert said.err.startswith("clientlab: environment 'old': ")
    assert not Path("results").exists()


def test_an_environment_is_built_once_and_measured(
    clientlab, server, results, monkeypatch, tmp_path
):
    """Without requirements, it has the standard library.

    The run file does not have the name of the user.
    """
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path))
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    Path("mine.toml").write_text(EXPERIMENT.format(f'python = "{python}"'))
    for _ in range(2):
        said = clientlab("run", "mine.toml", "--rounds", 1, "--url", server.url)
        assert said.code == 0, said.err
        held = results.read("last").surroundings.environments["old"]
        assert held.packages == {}
        (made,) = (tmp_path / "cache" / "clientlab" / "environments").glob(
            "*/clientlab-complete"
        )
        assert held.folder == f"~/{made.parent.relative_to(tmp_path)}"
        for path in Path("results").glob("*/run.json"):
            assert str(tmp_path) not in path.read_text()
