"""Bodies: seeded bytes, todo documents, chunks, and the pieces of a slow drip."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from mockupstream.refusals import as_json

BLOCK = 1 << 16
_FINEST = 0.001  # pieces that follow faster would not be kept apart on their way
_WORDS = ("ad", "aut", "delectus", "dolor", "et", "fugiat", "illo", "ipsum", "nisi", "quis", "rerum", "ut", "vero")


class Piece(NamedTuple):
    """A part of a body, sent `pause` seconds after the one before it."""

    pause: float
    data: bytes


def seeded(size: int, seed: int | None) -> bytes:
    """Return `size` bytes (64 KiB at most): always the same for a seed, a smaller size the beginning of a larger."""
    return _block(seed or 0)[:size]


def seeded_pieces(size: int, seed: int | None) -> Iterator[Piece]:
    """Yield `size` bytes in pieces of 64 KiB, the same block again and again: a large body costs no large memory."""
    return chunks(size, BLOCK, seed)


def chunks(size: int, chunk: int, seed: int | None) -> Iterator[Piece]:
    """Yield `size` bytes in pieces of `chunk` bytes (64 KiB at most), the last one shorter where it does not divide."""
    block = _block(seed or 0)
    for start in range(0, size, chunk):
        yield Piece(0.0, block[: min(chunk, size - start)])


def drip(size: int, duration: float) -> Iterator[Piece]:
    """Yield `size` bytes `*` evenly over `duration` seconds as httpbin does, the first of them at once."""
    pieces = max(1, min(size, int(duration / _FINEST)))
    for number in range(pieces):
        start, end = size * number // pieces, size * (number + 1) // pieces
        yield Piece(duration / pieces if number else 0.0, b"*" * (end - start))


@lru_cache(maxsize=4096)
def todo(number: int) -> bytes:
    """Return the JSON of todo `number`: userId (ten todos each), id, title and completed, the same ones always."""
    source = random.Random(number)  # noqa: S311
    title = " ".join(source.choices(_WORDS, k=source.randint(3, 7)))
    completed = source.random() < 0.5
    return as_json({"userId": (number - 1) // 10 + 1, "id": number, "title": title, "completed": completed})


@lru_cache(maxsize=16)
def _block(seed: int) -> bytes:
    return random.Random(seed).randbytes(BLOCK)  # noqa: S311
