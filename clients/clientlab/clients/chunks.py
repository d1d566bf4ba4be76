"""Chunks of a body for libraries that hand over chunks of a size of their own."""

from __future__ import annotations

from clientlab.clients.interfaces import Sink


def hand_over(chunk: bytes | bytearray | memoryview, size: int, sink: Sink) -> None:
    """Pass a chunk to the sink, in parts of `size` bytes at most."""
    view = memoryview(chunk)
    for at in range(0, len(view), size):
        sink(bytes(view[at : at + size]))
