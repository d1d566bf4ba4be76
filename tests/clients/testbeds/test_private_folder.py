"""The private keys of the proxy's CA are never left behind."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tempfile

import pytest

from clientlab.testbeds.private_folder import make_private_folder


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """A folder for temporary files of its own."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_only_this_user_can_read_it(temporary):
    """It lies among the temporary files, and not in the results folder, which users pack and send."""
    folder = make_private_folder()
    assert folder.parent == temporary
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_the_folder_of_a_killed_process_is_removed_at_the_next_start(temporary):
    """Folders of processes that live, and folders of others, stay."""
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    left = temporary / f"clientlab-ca-{ended.pid}-abc"
    (left / "pki").mkdir(parents=True)
    (left / "pki" / "root.key").write_text("a private key")
    stay = [temporary / f"clientlab-ca-{os.getppid()}-abc", temporary / "clientlab-ca-of-mine", temporary / "other"]
    for folder in stay:
        folder.mkdir()
    made = make_private_folder()
    assert {path.name for path in temporary.iterdir()} == {path.name for path in (*stay, made)}
