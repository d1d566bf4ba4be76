"""Temporary folders of the lab's processes, as those of private keys, are never left behind."""

from __future__ import annotations

import signal
import stat
import subprocess
import sys
import tempfile

import pytest

from clientlab.own_folder import OwnFolder, sweep

HOLDER = """
import sys, time
from clientlab.own_folder import OwnFolder
folder = OwnFolder("keys")
(folder.path / "root.key").write_text("a private key")
print(folder.path, flush=True)
time.sleep(600)
"""


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """A folder for temporary files of its own."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


def test_only_this_user_can_read_it_and_it_goes_with_its_end(temporary):
    """It lies among the temporary files, and not in the results folder, which users pack and send."""
    with OwnFolder("keys") as folder:
        assert folder.path.parent == temporary
        assert stat.S_IMODE(folder.path.stat().st_mode) == 0o700
        (folder.path / "root.key").touch()
    assert list(temporary.iterdir()) == []


@pytest.mark.real
def test_the_folder_of_a_killed_process_is_removed_at_the_next_start(temporary):
    """Folders of processes that live stay, and so do those that others made."""
    with subprocess.Popen([sys.executable, "-c", HOLDER], stdout=subprocess.PIPE, text=True) as holder:
        left = holder.stdout.readline().strip()
        (temporary / "clientlab-keys-of-mine.txt").touch()
        (temporary / "clientlab-keys-link").symlink_to(temporary / "other")
        (temporary / "other").mkdir()
        sweep()
        assert left in map(str, temporary.iterdir())
        holder.send_signal(signal.SIGKILL)
    made = OwnFolder("job")
    names = {"clientlab-keys-of-mine.txt", "clientlab-keys-link", "other", made.path.name}
    assert {path.name for path in temporary.iterdir()} == names
    made.remove()
