"""Allocations of a trial's own process, as memray records them.

Only the trial of a memory profile imports this module, and memray with it.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import memray

_RESIDENT_EVERY = 1000
"""Milliseconds between two readings of the resident memory, which the lab does not use."""


@contextlib.contextmanager
def tracked(path: str) -> Iterator[None]:
    """Record each allocation of all threads meanwhile, in a file whose path begins with `path`.

    Objects of Python are recorded one by one, in the sizes that were requested: most of them are smaller than what
    malloc is asked for. PYTHONMALLOC=malloc would show them as well, but it would be another allocator than that of the
    rounds. The file is not compressed, since the clock still runs.
    """
    file = memray.FileDestination(Path(f"{path}-{os.getpid()}.bin"), compress_on_exit=False)
    with memray.Tracker(destination=file, trace_python_allocators=True, memory_interval_ms=_RESIDENT_EVERY):
        yield
