"""The end of a file that another process writes, however much that process has written."""

from __future__ import annotations

import os
from pathlib import Path

MOST_OUTPUT = 64 << 10
"""Bytes of a process's output that are read and kept: the end, where the error is."""


def last_lines(path: Path) -> str:
    """Return the whole lines within the last 64 KiB. Raises OSError."""
    with path.open("rb") as file:
        beyond = max(0, file.seek(0, os.SEEK_END) - MOST_OUTPUT)
        file.seek(max(0, beyond - 1))
        content = file.read(MOST_OUTPUT + 1)
    return (content.partition(b"\n")[2] if beyond else content).decode(errors="replace")
