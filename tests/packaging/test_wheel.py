"""The wheel and the sdist hold everything that the lab needs, so that it runs without
its repository.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from clientlab.experiments.file import bundled, read_plan
from running import ROOT

pytestmark = pytest.mark.real  # installs the lab's libraries

UV = str(Path(sys.executable).with_name("uv"))
PACKAGES = {
    "clientlab": ROOT / "clients" / "clientlab",
    "mockupstream": ROOT / "servers" / "mockupstream",
}

DEMONSTRATED = ("requests-session@threads", "aiohttp@workers")
"""Strategies of the demo; all eight would take 10 s more."""


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> tuple[Path, Path]:
    """Build an sdist, and a wheel from it, as `pip install` of an sdist would."""
    folder = tmp_path_factory.mktemp("dist")
    words = [
        "build",
        "--quiet",
        "--no-build-isolation",
        "--python",
        sys.executable,
        "--out-dir",
        folder,
        ROOT,
    ]
    subprocess.run([UV, *words], check=True, timeout=100)
    (sdist,) = folder.glob("*.tar.gz")
    (wheel,) = folder.glob("*.whl")
    return sdist, wheel


@pytest.fixture(scope="module")
def programs(built, tmp_path_factory) -> Path:
    """Install the wheel with the lock's versions in a fresh environment, and return the
    folder of its programs.
    """
    folder = tmp_path_factory.mktemp("environment")
    lock = ROOT / "requirements" / "development.txt"
    subprocess.run(
        [UV, "venv", "--quiet", "--python", sys.executable, folder],
        check=True,
        timeout=60,
    )
    words = [
        "pip",
        "install",
        "--quiet",
        "--python",
        folder / "bin" / "python",
        "--constraints",
        lock,
        built[1],
    ]
    subprocess.run([UV, *words], check=True, timeout=100)
    return folder / "bin"


def call(program: Path, *words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the lab in a folder, without variables of this process that could lead it to
    the repository.
    """
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTHON", "VIRTUAL_ENV"))
    }
    return subprocess.run(
        [program, *words],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


def test_the_wheel_holds_every_file_of_the_packages_and_no_other(built):
    expected = {
        str(Path(package, path.relative_to(folder)))
        for package, folder in PACKAGES.items()
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    with zipfile.ZipFile(built[1]) as wheel:
        names = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert names == expected | {"clientlab/Caddyfile"}
    assert {
        "mockupstream/gunicorn_config.py",
        "clientlab/experiments/demo.toml",
    } <= names
    with tarfile.open(built[0]) as sdist:
        top = {Path(name).parts[1] for name in sdist.getnames()}
    files = {
        "pyproject.toml",
        "README.md",
        "LICENSE",
        "CHANGELOG.md",
        ".gitignore",
        "PKG-INFO",
    }
    assert top == {"clients", "proxy", "servers"} | files


def test_the_demo_runs_from_the_wheel_in_an_empty_folder(programs, tmp_path):
    listed = call(programs / "clientlab", "list", "--json", folder=tmp_path)
    missing = {
        row["name"]
        for row in json.loads(listed.stdout)
        if row["note"].startswith("unavailable")
    }
    assert not missing & {arm.strategy for arm in read_plan(bundled()["demo"]).arms}
    words = [
        "demo",
        "--quick",
        "--rounds=1",
        "--json",
        *(f"-t{name}" for name in DEMONSTRATED),
    ]
    done = call(programs / "clientlab", "run", *words, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    run = json.loads(done.stdout)
    assert run["status"] == "done"
    assert run["surroundings"]["lab_commit"] is None
    assert {
        (trial["planned"]["strategy"], trial["planned"]["route"])
        for trial in run["trials"]
    } == {(name, route) for name in DEMONSTRATED for route in ("direct", "proxy")}
    assert {trial["status"] for trial in run["trials"]} == {"done"}
    assert {
        trial["servers"]["upstream"]["requests"] > 10 for trial in run["trials"]
    } == {True}
    assert {path.name for path in tmp_path.iterdir()} == {"results"}
    page = call(
        programs / "clientlab",
        "report",
        "last",
        "--html",
        "report.html",
        folder=tmp_path,
    )
    assert page.returncode == 0, page.stderr
    assert (tmp_path / "report.html").stat().st_size > 50_000
    cold = call(
        programs / "clientlab",
        "run",
        "--cold",
        "-thttpx",
        "--rounds=1",
        folder=tmp_path,
    )
    assert cold.returncode == 0, cold.stderr
