"""The PATH of CI's run on a bare machine: optional programs are not on it, and all others are."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

from running import ROOT

OPTIONAL = ("ab", "chromium", "docker")


@pytest.fixture
def bare(tmp_path):
    """Make the bare PATH of these folders. The script itself needs some of the system's programs."""

    def call(*folders) -> subprocess.CompletedProcess[str]:
        (tmp_path / "links").mkdir()
        path = os.pathsep.join([*map(str, folders), os.environ["PATH"]])
        words = [str(ROOT / ".ci" / "bare-path"), str(tmp_path / "links")]
        return subprocess.run(words, env={"PATH": path}, capture_output=True, text=True, check=False)

    return call


def a_program(folder, name):
    folder.mkdir(exist_ok=True)
    program = folder / name
    program.write_text(f"#!/bin/sh\necho {name}\n")
    program.chmod(0o755)


def test_optional_programs_are_hidden_and_their_neighbours_are_found(bare, tmp_path):
    """Folders keep their order, and one without an optional program stays as it is."""
    for name in (*OPTIONAL, "neighbour", "both"):
        a_program(tmp_path / "first folder", name)
    for name in ("both", "other"):
        a_program(tmp_path / "second", name)
    found = bare(tmp_path / "first folder", tmp_path / "second").stdout.strip()
    assert [shutil.which(name, path=found) for name in OPTIONAL] == [None] * 3
    assert found.split(os.pathsep)[1] == str(tmp_path / "second")
    programs = [shutil.which(name, path=found) for name in ("neighbour", "both", "other", "env")]
    answers = [subprocess.run([one], capture_output=True, text=True, check=True).stdout for one in programs[:3]]
    assert answers == ["neighbour\n", "both\n", "other\n"]
    assert programs[1] != str(tmp_path / "second" / "both")
    assert programs[3]


def test_without_a_folder_for_its_links_nothing_is_printed():
    """The one line says how to call it."""
    called = subprocess.run([str(ROOT / ".ci" / "bare-path")], capture_output=True, text=True, check=False)
    assert (called.returncode, called.stdout) == (1, "")
    assert "usage: " in called.stderr
