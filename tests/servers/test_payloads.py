"""Bodies."""

from __future__ import annotations

import json

import pytest

from mockupstream import payloads


def test_seeded_bytes_are_the_same_for_a_seed() -> None:
    """A seed always gives the same bytes, and a smaller size the beginning of a larger."""
    assert payloads.seeded(100, 7) == payloads.seeded(1000, 7)[:100]
    assert payloads.seeded(100, 7) != payloads.seeded(100, 8)


@pytest.mark.parametrize("size", [0, 1, 65536, 65537, 200_000])
def test_pieces_add_up(size: int) -> None:
    """Large bodies come in pieces that add up to their size."""
    assert sum(len(piece.data) for piece in payloads.seeded_pieces(size, None)) == size


def test_chunks_are_of_the_size_asked_for() -> None:
    """All chunks but the last have the size asked for."""
    assert [len(piece.data) for piece in payloads.chunks(10, 4, None)] == [4, 4, 2]


def test_a_drip_is_spread_evenly() -> None:
    """A drip sends its first byte at once and the others a pause apart."""
    pieces = list(payloads.drip(4, 2.0))
    assert [piece.pause for piece in pieces] == [0.0, 0.5, 0.5, 0.5]
    assert b"".join(piece.data for piece in pieces) == b"****"


@pytest.mark.parametrize(("size", "duration", "count"), [(1000, 0.01, 10), (5, 0.0, 1), (7, 0.003, 3)])
def test_a_fast_drip_has_no_more_than_a_piece_a_millisecond(size: int, duration: float, count: int) -> None:
    """Where bytes are closer than a millisecond, pieces hold several, and none is lost."""
    pieces = list(payloads.drip(size, duration))
    assert len(pieces) == count
    assert sum(len(piece.data) for piece in pieces) == size


def test_todos_are_as_expected() -> None:
    """A todo has the four fields, ten todos to a user."""
    todo = json.loads(payloads.todo(21))
    assert list(todo) == ["userId", "id", "title", "completed"]
    assert (todo["userId"], todo["id"]) == (3, 21)
    assert isinstance(todo["title"], str)
    assert isinstance(todo["completed"], bool)
