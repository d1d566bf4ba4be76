"""Temporary folders of the lab's processes. Those of killed processes are removed at the next start."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

FolderKind = Literal["keys", "job", "environments", "profile"]
_PREFIXES = {
    "keys": "clientlab-keys-",
    "job": "clientlab-job-of-",
    "environments": "clientlab-environments-",
    "profile": "clientlab-profile-",
}


class OwnFolder:
    """A new temporary folder with mode 0700, as a context manager, or until `remove`.

    The process holds a lock on it. The kernel releases the lock when the process ends, however it ends, so nobody has
    to guess by a process id, which may belong to another process or to another container by now.
    """

    def __init__(self, kind: FolderKind) -> None:
        sweep()
        while not self._is_locked(kind):
            pass  # another start has removed it in the moment before it was locked

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.remove()

    def remove(self) -> None:
        """Remove the folder and all that is in it."""
        try:
            shutil.rmtree(self.path)
        finally:
            os.close(self._lock)

    def _is_locked(self, kind: FolderKind) -> bool:
        self.path = Path(tempfile.mkdtemp(prefix=_PREFIXES[kind]))
        self._lock = os.open(self.path, os.O_RDONLY)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        if os.fstat(self._lock).st_nlink and self.path.exists():
            return True
        os.close(self._lock)
        return False


def sweep() -> None:
    """Remove the folders of processes of this user that were killed, and could not remove theirs."""
    for prefix in _PREFIXES.values():
        for folder in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
            with contextlib.suppress(OSError):  # another start removes it, a process has its lock, or it is another's
                _sweep(folder)


def _sweep(folder: Path) -> None:
    """Raises OSError."""
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(lock).st_uid == os.getuid():
            shutil.rmtree(folder)
    finally:
        os.close(lock)
