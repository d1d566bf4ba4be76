"""When an environment is built, and who may change it.

Real ones are in `cli/test_environments.py`.
"""

from __future__ import annotations

import contextlib

import pytest

from clientlab.errors import LabError
from clientlab.results.plan import EnvironmentSpec
from clientlab.running import environments


@pytest.fixture
def ran(monkeypatch, tmp_path):
    """The commands of uv, of which none is run."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    found = []

    def run(command, *words):
        found.append(
            (command, *(word for word in words if word in {"--upgrade", "--reinstall"}))
        )
        if command == "venv":
            folder = tmp_path / words[-1]
            folder.mkdir()

    monkeypatch.setattr(environments, "_run_uv", run)
    return found


def build(*requirements: str, stack: contextlib.ExitStack):
    return environments._build(EnvironmentSpec(requirements=[*requirements]), stack)


@pytest.mark.parametrize(
    "requirement",
    ["httpx==0.28.1", "httpx[http2] == 0.28.1", "httpx==0.28.1;python_version>'3'"],
)
def test_pinned_requirements_are_installed_once_and_shared(requirement, ran):
    with contextlib.ExitStack() as one, contextlib.ExitStack() as other:
        assert build(requirement, stack=one) == build(requirement, stack=other)
    assert ran == [("venv",), ("pip",)]


@pytest.mark.parametrize(
    ("requirement", "anew"),
    [
        ("httpx", ["--upgrade"]),
        ("httpx>=0.28", ["--upgrade"]),
        ("httpx==0.28.*", ["--upgrade"]),
        ("/home/me/httpx", ["--upgrade", "--reinstall"]),
        ("httpx @ git+https://example.org/httpx@main", ["--upgrade", "--reinstall"]),
    ],
)
def test_other_requirements_are_brought_up_to_date_for_each_run(requirement, anew, ran):
    folders = set()
    for _ in range(2):
        with contextlib.ExitStack() as stack:
            folders.add(build("aiohttp==3.14.5", requirement, stack=stack))
    assert len(folders) == 1
    assert ran == [("venv",), ("pip", *anew), ("pip", *anew)]


def test_an_environment_that_another_run_measures_is_not_changed(ran):
    with contextlib.ExitStack() as one:
        first = build("httpx", stack=one)
        with contextlib.ExitStack() as other:
            second = build("httpx", stack=other)
        assert first != second
    assert len(ran) == 4
    with contextlib.ExitStack() as later:
        assert build("httpx", stack=later) == first


@pytest.mark.usefixtures("ran")
def test_an_environment_in_which_a_run_is_resumed_is_not_changed():
    """Such a run names its folder, and builds nothing."""
    with contextlib.ExitStack() as first:
        folder = build("httpx", stack=first)
        second = contextlib.ExitStack()
        with second, pytest.raises(LabError, match="another run is using it"):
            environments._keep(folder, second)
    with contextlib.ExitStack() as resumed:
        environments._keep(folder, resumed)
        with contextlib.ExitStack() as other:
            assert build("httpx", stack=other) != folder
