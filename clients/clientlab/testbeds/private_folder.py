"""A folder for the private keys of the proxy's CA: readable by this user alone, and never beside the results."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import tempfile
from pathlib import Path

import psutil

_PREFIX = "clientlab-ca-"
_OF_PROCESS = re.compile(rf"{_PREFIX}(\d+)-")


def make_private_folder() -> Path:
    """A new folder with mode 0700. Folders of processes that were killed, and could not remove theirs, are removed."""
    _sweep()
    return Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-"))


def _sweep() -> None:
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        found = _OF_PROCESS.match(folder.name)
        with contextlib.suppress(FileNotFoundError):  # another start removes it at the same time
            mine = folder.lstat().st_uid == os.getuid() and not folder.is_symlink()
            if found and mine and not psutil.pid_exists(int(found[1])):
                shutil.rmtree(folder)
