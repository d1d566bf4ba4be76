"""Whether this process has run out of file descriptors, for libraries that report it as a failed connection."""

from __future__ import annotations

import contextlib
import os

_NEEDED = 4  # file descriptors of a transfer by libcurl: wake-up, name resolution, socket


def out_of_descriptors() -> bool:
    """Whether this process may open fewer files than a transfer needs."""
    opened: list[int] = []
    with contextlib.suppress(OSError):
        opened.extend(os.open(os.devnull, os.O_RDONLY) for _ in range(_NEEDED))
    for descriptor in opened:
        os.close(descriptor)
    return len(opened) < _NEEDED
