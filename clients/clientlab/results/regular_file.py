"""Reading a file that anybody may have put there: only a regular one, and none that is too large, also unpacked."""

from __future__ import annotations

import gzip
import io
import os
import stat
import zlib
from pathlib import Path

from clientlab.errors import LabError

MOST_BYTES = 100 << 20
"""Limit of a run file: some 20,000 trials. To validate as much takes seconds, and memory of several times its size."""
_GZIP = b"\x1f\x8b"
"""The first bytes of a gzip file (RFC 1952). No JSON text begins so."""


def content_of(path: Path, what: str = "run", most_bytes: int | None = None) -> bytes:
    """The file's content, unpacked if gzip packed it. `what` it holds, for messages; `most_bytes`: 100 MiB.

    Raises OSError, and LabError for a file that is not regular, too large, or not whole.
    """
    most_bytes = MOST_BYTES if most_bytes is None else most_bytes
    # Without O_NONBLOCK, opening a pipe into which nobody writes would wait for ever.
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:  # noqa: PTH123 - has no Path
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise LabError(f"{path}: it is no regular file; name a {what} file")
        if found.st_size > most_bytes:
            raise _too_large(path, f"{found.st_size:,} bytes", what, most_bytes)
        content = file.read(most_bytes)
    return _unpacked(content, path, what, most_bytes) if content.startswith(_GZIP) else content


def _unpacked(content: bytes, path: Path, what: str, most_bytes: int) -> bytes:
    """A small file may unpack to any size, so no more is unpacked than such a file may have."""
    try:
        with gzip.open(io.BytesIO(content)) as packed:
            found = packed.read(most_bytes + 1)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise LabError(f"{path}: not a whole gzip file ({error}); it was cut short or damaged") from error
    if len(found) > most_bytes:
        raise _too_large(path, "more when unpacked", what, most_bytes)
    return found


def _too_large(path: Path, size: str, what: str, most_bytes: int) -> LabError:
    return LabError(f"{path}: {size}, and no {what} has more than {most_bytes:,}; it is no {what} file")
