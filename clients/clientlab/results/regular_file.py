"""Reading a file that anybody may have put there: only a regular one, and none that is too large."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from clientlab.errors import LabError

MOST_BYTES = 100 << 20
"""Limit of a run file: some 20,000 trials. To validate as much takes seconds, and memory of several times its size."""


def content_of(path: Path) -> bytes:
    """The file's content. Raises OSError, and LabError for a file that is not regular or too large."""
    # Without O_NONBLOCK, opening a pipe into which nobody writes would wait for ever.
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:  # noqa: PTH123 - has no Path
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise LabError(f"{path}: it is no regular file; name a run file")
        if found.st_size > MOST_BYTES:
            raise LabError(
                f"{path}: {found.st_size:,} bytes, and no run has more than {MOST_BYTES:,}; it is no run file"
            )
        return file.read(MOST_BYTES)
