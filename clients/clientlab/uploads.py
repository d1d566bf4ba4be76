"""Bodies of uploads that nobody holds whole: seeded bytes, made while they are sent."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable, Iterator

BLOCK = 1 << 16
"""Bytes that are sent at a time; the same block again and again, so that sending measures sending."""


class Upload:
    """`size` bytes, the same for a seed. Each iteration begins anew, so that requests and threads may share one."""

    def __init__(self, size: int, seed: int) -> None:
        self._size = size
        self._block = random.Random(seed).randbytes(BLOCK)  # noqa: S311 - a payload, not a secret

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[bytes]:
        for start in range(0, self._size, BLOCK):
            yield self._block[: self._size - start]

    def reader(self) -> Callable[[int], bytes]:
        """A function from a count to as many of the next bytes, or fewer; ``b""`` at the end. For libcurl."""
        at = 0

        def read(count: int) -> bytes:
            nonlocal at
            begin = at % BLOCK
            piece = self._block[begin : begin + min(count, self._size - at)]
            at += len(piece)
            return piece

        return read


class AsyncUpload:
    """The same for asyncio. A type of its own: libraries take what can be iterated without await for blocking."""

    def __init__(self, upload: Upload) -> None:
        self._upload = upload

    def __len__(self) -> int:
        return len(self._upload)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for block in self._upload:
            yield block
