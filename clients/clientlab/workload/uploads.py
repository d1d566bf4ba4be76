"""Bodies of streamed uploads: bytes that a seed decides, made while they are sent and never held whole."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable, Iterator

BLOCK = 1 << 16
"""Bytes per block. The same block is sent again and again, so that generating it costs nothing."""


class Upload:
    """`size` bytes, which the seed decides. Each iteration starts anew, so requests and threads may share an object."""

    def __init__(self, size: int, seed: int) -> None:
        self._size = size
        self._block = random.Random(seed).randbytes(BLOCK)  # noqa: S311 - a payload, not a secret

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[bytes]:
        for start in range(0, self._size, BLOCK):
            yield self._block[: self._size - start]

    def reader(self) -> Callable[[int], bytes]:
        """A read function for libcurl: it returns at most `count` of the next bytes, and ``b""`` at the end."""
        at = 0

        def read(count: int) -> bytes:
            nonlocal at
            begin = at % BLOCK
            piece = self._block[begin : begin + min(count, self._size - at)]
            at += len(piece)
            return piece

        return read


class AsyncUpload:
    """An upload for asyncio. It is a type of its own, because libraries treat every plain iterable as blocking."""

    def __init__(self, upload: Upload) -> None:
        self._upload = upload

    def __len__(self) -> int:
        return len(self._upload)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for block in self._upload:
            yield block
