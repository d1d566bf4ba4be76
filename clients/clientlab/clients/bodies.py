"""Bodies of responses: their length, and chunks of a wanted size, for libraries that check or hand over neither."""

from __future__ import annotations

from typing import Protocol

from clientlab.clients.client_interface import Sink
from clientlab.errors import ErrorTable, Fault


def hand_over(chunk: bytes | bytearray | memoryview, size: int, sink: Sink) -> None:
    """Pass a chunk to the sink, in parts of `size` bytes at most."""
    view = memoryview(chunk)
    for at in range(0, len(view), size):
        sink(bytes(view[at : at + size]))


LENGTH_ERRORS: ErrorTable = (
    (OverflowError, "protocol", "cannot fit 'int' into an index-sized integer"),
    (ValueError, "protocol", "read length must be non-negative"),
    (MemoryError, "protocol"),
)
"""What `http.client` raises for a length of a body or chunk that is negative, or that no memory can hold."""


class _Headers(Protocol):
    def get(self, name: str, /) -> str | None: ...


def check_length(headers: _Headers, *, chunked: bool) -> None:
    """Raise Fault if `headers` have a Content-Length, since the library found no length in them.

    Call it only for a response whose length the library does not know: sound ones with a length never pay for it.
    """
    length = headers.get("content-length")
    if length is not None and not chunked:
        raise Fault("protocol", f"Content-Length: {length[:40]!r} is no length")
