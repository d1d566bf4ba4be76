"""Disk space of mapped files, allocated before it is written to: a full disk is an OSError, and never a bus error."""

from __future__ import annotations

import os


def take_room(file: int, size: int) -> None:
    """Make the file at least `size` bytes long, with allocated disk space."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file, 0, size)
        return
    have = os.fstat(file).st_size  # macOS has no fallocate; writing zeros allocates the space as well
    if size > have:
        os.pwrite(file, bytes(size - have), have)
